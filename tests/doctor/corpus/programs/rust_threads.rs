// SPDX-License-Identifier: MIT
// Rust threads with the system's malloc.
//   local       vectors of strings, made and dropped by the same thread
//   mutex       std::sync::Mutex around most of the work; Rust waits by futex itself, without pthread
//   arc         clones of one Arc: its count is shared
//   neighbours  two boxed atomics, made one after the other, each counted in by one thread
//   channel     boxes that one thread makes and the other drops, sent 500 at a time
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{mpsc, Arc, Mutex};
use std::thread;

// As std::hint::black_box, which older compilers do not have.
fn black_box<T>(value: T) -> T {
    unsafe {
        let copy = std::ptr::read_volatile(&value);
        std::mem::forget(value);
        copy
    }
}

fn mix(mut value: u64, steps: u32) -> u64 {
    for _ in 0..steps {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
    }
    value
}

fn in_threads(threads: u64, work: impl Fn(u64) + Send + Sync + 'static) {
    let work = Arc::new(work);
    let running: Vec<_> = (0..threads)
        .map(|i| {
            let work = work.clone();
            thread::spawn(move || work(i))
        })
        .collect();
    running.into_iter().for_each(|thread| thread.join().unwrap());
}

fn make_batch(first: u64) -> Vec<Box<[u64; 9]>> {
    (0..500).map(|i| Box::new([first + i; 9])).collect()
}

fn channel(threads: u64, batches: u64) {
    if threads == 1 {
        return in_threads(1, move |_| (0..batches).for_each(|i| drop(black_box(make_batch(i)))));
    }
    let (sender, receiver) = mpsc::sync_channel(16);
    let consumer = thread::spawn(move || receiver.iter().map(|batch: Vec<Box<[u64; 9]>>| batch[7][3]).fold(0, u64::wrapping_add));
    (0..batches).for_each(|i| sender.send(make_batch(i)).unwrap());
    drop(sender);
    black_box(consumer.join().unwrap());
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let (threads, size): (u64, u64) = (words[2].parse().unwrap(), words[3].parse().unwrap());
    let each = size / threads;
    match words[1].as_str() {
        "local" => in_threads(threads, move |_| {
            for _ in 0..each {
                black_box((0..500).map(|i| format!("a text that needs a block, number {i}")).collect::<Vec<_>>());
            }
        }),
        "mutex" => {
            let shared = Mutex::new(1);
            in_threads(threads, move |i| {
                for _ in 0..each {
                    black_box(mix(i + 3, 40));
                    let mut value = shared.lock().unwrap();
                    *value = mix(*value + i, 200);
                }
            });
        }
        "arc" => {
            let shared = Arc::new(5);
            in_threads(threads, move |_| (0..each).for_each(|_| drop(black_box(shared.clone()))));
        }
        "neighbours" => {
            let counters: Vec<_> = (0..threads).map(|_| Box::new(AtomicU64::new(0))).collect();
            in_threads(threads, move |i| {
                for _ in 0..each {
                    counters[i as usize].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        _ => channel(threads, size / 500),
    }
    println!("{} {} {}", words[1], threads, size);
}
