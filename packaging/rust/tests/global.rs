// SPDX-License-Identifier: MIT
//! Freehold as the allocator of a whole program: the standard library's containers, threads, and the figures.
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc;
use std::thread;

use freehold::Freehold;

#[global_allocator]
static ALLOCATOR: Freehold = Freehold;

fn is_ours<T>(place: *const T) -> bool {
    unsafe { freehold::usable_size(place.cast()) != 0 }
}

#[test]
fn containers_take_their_memory_here() {
    let text = String::from("a text that is long enough to be on the heap");
    let numbers: Vec<u32> = (0..100_000).collect();
    let boxed = Box::new(7_u64);
    assert!(is_ours(text.as_ptr()) && is_ours(numbers.as_ptr()) && is_ours(&*boxed));
    let names: HashMap<String, usize> = (0..10_000).map(|n| (format!("name {n}"), n)).collect();
    let sorted: BTreeMap<&str, usize> = names.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    assert_eq!(names["name 77"], 77);
    assert_eq!(sorted.values().sum::<usize>(), 9_999 * 10_000 / 2);
}

#[test]
fn overaligned_types_are_aligned() {
    #[repr(align(4096))]
    struct Page([u8; 4096]);
    let pages: Vec<Box<Page>> = (0..50).map(|n| Box::new(Page([n; 4096]))).collect();
    for (n, page) in pages.iter().enumerate() {
        assert_eq!(page.0.as_ptr() as usize % 4096, 0);
        assert!(page.0.iter().all(|&byte| byte == n as u8));
    }
}

#[test]
fn blocks_cross_threads_and_threads_end() {
    const MESSAGES: usize = 20_000;
    let (sender, receiver) = mpsc::channel::<Vec<usize>>();
    let senders: Vec<_> = (0..4)
        .map(|t| {
            let sender = sender.clone();
            thread::spawn(move || {
                (0..MESSAGES).for_each(|n| sender.send(vec![t * MESSAGES + n; 1 + n % 40]).unwrap())
            })
        })
        .collect();
    drop(sender);
    let mut seen = vec![false; 4 * MESSAGES];
    for message in receiver {
        assert!(message.iter().all(|&n| n == message[0]));
        assert!(
            !std::mem::replace(&mut seen[message[0]], true),
            "a message came twice"
        );
    }
    assert!(seen.iter().all(|&each| each));
    senders
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

#[test]
fn thread_locals_are_destroyed_with_their_blocks() {
    thread_local!(static KEPT: std::cell::RefCell<Vec<String>> = const { std::cell::RefCell::new(Vec::new()) });
    for _ in 0..50 {
        thread::spawn(|| {
            KEPT.with(|kept| kept.borrow_mut().extend((0..100).map(|n| n.to_string())))
        })
        .join()
        .unwrap();
    }
}

#[test]
fn stats_count_and_trim_gives_back() {
    let before = freehold::stats();
    assert!(before.reserved_bytes > 0 && before.threads >= 1 && before.metadata_bytes > 0);
    let blocks: Vec<Vec<u8>> = (0..64).map(|_| vec![1; 1 << 20]).collect();
    assert!(freehold::stats().run_bytes >= before.run_bytes + (60 << 20));
    drop(blocks);
    freehold::trim();
    freehold::idle();
    assert!(freehold::stats().purged_bytes > before.purged_bytes);
}

#[test]
fn limit_is_handed_back() {
    assert_eq!(freehold::set_limit(Some(64 << 30)), None);
    assert_eq!(freehold::set_limit(None), Some(64 << 30));
    assert_eq!(freehold::set_limit(None), None);
}

#[test]
fn counts_are_exact_while_other_threads_allocate() {
    let stop = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    drop(vec![0_u8; 100]);
                }
            });
        }
        for _ in 0..1_000 {
            let (sum, counts) = freehold::count(|| {
                let inner = freehold::assert_allocations!(Box::new(40_u64), 1);
                *inner + *Box::new(2_u64)
            });
            assert_eq!((sum, counts.allocations, counts.frees), (42, 2, 2));
            assert_eq!(counts.allocated_bytes, counts.freed_bytes);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let caught = std::panic::catch_unwind(|| {
        freehold::assert_allocations!(vec![String::from("one"), String::from("two")], 2)
    });
    assert!(caught.is_err());
}

#[test]
fn a_scope_has_its_blocks_from_the_heap_until_its_end() {
    let name = std::ffi::CStr::from_bytes_with_nul(b"tests\0").unwrap();
    let heap = freehold::Heap::new(name, None).unwrap();
    let (kept, plain) = {
        let _scope = heap.enter();
        let kept: Vec<u64> = (0..1000).collect();
        let _none = freehold::HeapScope::none();
        (kept, vec![0_u8; 5000])
    };
    let stats = heap.stats();
    assert!((8000..16_000).contains(&stats.live_bytes) && stats.live_objects == 1);
    drop(plain);
    thread::spawn(move || drop(kept)).join().unwrap();
    assert_eq!(heap.stats().live_objects, 0);
    let left: Vec<String> = {
        let _scope = heap.enter();
        vec![String::from("lives longer than its heap"); 100]
    };
    drop(heap);
    assert!(left.iter().all(|text| text == "lives longer than its heap"));
}
