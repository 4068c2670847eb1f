// SPDX-License-Identifier: MIT
//! A program whose threads hand blocks to each other, under Freehold.
use std::sync::mpsc;
use std::thread;

#[global_allocator]
static ALLOCATOR: freehold::Freehold = freehold::Freehold;

fn main() {
    let (sender, receiver) = mpsc::channel::<Box<u64>>();
    let threads: Vec<_> = (0..4)
        .map(|first| {
            let sender = sender.clone();
            thread::spawn(move || {
                (first..100_000)
                    .step_by(4)
                    .for_each(|n| sender.send(Box::new(n + 1)).unwrap())
            })
        })
        .collect();
    drop(sender);
    let (count, sum) = receiver
        .iter()
        .fold((0, 0), |(count, sum), message| (count + 1, sum + *message));
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    println!("{count} messages, sum {sum}");
    eprintln!("committed: {} KiB", freehold::stats().committed_bytes >> 10);
}
