// SPDX-License-Identifier: MIT
//! What both programs do, as tests/conformance/musl_static.c does it:
//!   live MIB TIMES    replaces live blocks at random, each TIMES times; ends with the KiB that are resident on standard output
//!   threads           eight threads replace blocks, and send what they have left to the first, which frees it
use std::env;
use std::fs;
use std::sync::mpsc;
use std::thread;

const BLOCK_BYTES: usize = 380;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// Every byte of a block is the last of its length.
fn check(block: &[u8]) {
    let stamp = block.len() as u8;
    assert!(
        block.first().map_or(true, |&byte| byte == stamp)
            && block.last().map_or(true, |&byte| byte == stamp),
        "a block was overwritten"
    );
}

/// Replaces `count` of the blocks by blocks of 16 B to 2 KiB.
fn replace(blocks: &mut [Box<[u8]>], count: usize, random: &mut Random) {
    const DOUBLINGS: usize = 7;
    for _ in 0..count {
        let at = random.below(blocks.len());
        check(&blocks[at]);
        blocks[at] = Box::default();
        let least = 16 << random.below(DOUBLINGS);
        let bytes = least + random.below(least);
        blocks[at] = vec![bytes as u8; bytes].into_boxed_slice();
    }
}

fn replace_live_data(mib: usize, times: usize) {
    let n = (mib << 20) / BLOCK_BYTES;
    let mut blocks: Vec<Box<[u8]>> = (0..n).map(|_| Box::default()).collect();
    replace(&mut blocks, n * times, &mut Random(88172645463325252));
    let status = fs::read_to_string("/proc/self/status").expect("no /proc");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    println!("{}", number.expect("no RssAnon"));
}

fn threads() {
    const THREADS: u64 = 8;
    const BLOCKS: usize = 100;
    let (sender, receiver) = mpsc::channel();
    let workers: Vec<_> = (1..=THREADS)
        .map(|seed| {
            let sender = sender.clone();
            thread::spawn(move || {
                let mut blocks: Vec<Box<[u8]>> = (0..BLOCKS).map(|_| Box::default()).collect();
                replace(&mut blocks, 10_000, &mut Random(seed));
                for block in blocks {
                    sender.send(block).expect("nobody listens");
                }
            })
        })
        .collect();
    drop(sender);
    let received = receiver.iter().inspect(|block| check(block)).count();
    assert_eq!(received, THREADS as usize * BLOCKS);
    for worker in workers {
        worker.join().expect("a thread failed");
    }
}

pub fn run() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |i: usize| arguments[i].parse().expect("a number");
    match arguments.first().map(String::as_str) {
        Some("live") => replace_live_data(number(1), number(2)),
        Some("threads") => threads(),
        _ => panic!("live MIB TIMES, or threads"),
    }
}
