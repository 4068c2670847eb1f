// SPDX-License-Identifier: MIT
//! Heaps and pools as allocators of containers. The global allocator is the system's: nothing comes from it by mistake.
use std::alloc::Layout;
use std::ffi::CStr;
use std::thread;

use allocator_api2::alloc::Allocator;
use allocator_api2::boxed::Box;
use allocator_api2::vec::Vec;
use hashbrown::{DefaultHashBuilder, HashMap};

use freehold::Heap;

fn heap(limit_bytes: Option<usize>) -> Heap {
    Heap::new(CStr::from_bytes_with_nul(b"tests\0").unwrap(), limit_bytes).unwrap()
}

#[test]
fn a_vector_grows_and_shrinks_in_its_heap() {
    let heap = heap(None);
    let mut numbers = Vec::new_in(&heap);
    numbers.extend(0..100_000_u64);
    assert!(heap.stats().live_bytes >= 800_000 && heap.stats().live_objects == 1);
    numbers.truncate(10);
    numbers.shrink_to_fit();
    assert!(heap.stats().live_bytes < 1000);
    assert!(numbers.iter().copied().eq(0..10));
    drop(numbers);
    assert_eq!(heap.stats().live_objects, 0);
}

#[test]
fn a_map_lives_in_a_heap_and_ends_in_another_thread() {
    let heap = heap(None);
    thread::scope(|scope| {
        let mut map = HashMap::with_hasher_in(DefaultHashBuilder::default(), &heap);
        (0..10_000_u32).for_each(|n| drop(map.insert(n, Box::new_in(n, &heap))));
        assert!(heap.stats().live_objects > 10_000);
        scope.spawn(move || assert!((0..10_000).all(|n| *map[&n] == n)));
    });
    assert_eq!(heap.stats().live_objects, 0);
}

#[test]
fn alignment_is_kept_when_a_block_grows_and_the_alignment_may_change() {
    let heap = heap(None);
    let small = Layout::from_size_align(100, 8).unwrap();
    let large = Layout::from_size_align(5000, 4096).unwrap();
    unsafe {
        let block = heap.allocate_zeroed(small).unwrap().cast::<u8>();
        assert!((0..100).all(|i| *block.as_ptr().add(i) == 0));
        block.as_ptr().write_bytes(7, 100);
        let grown = heap.grow(block, small, large).unwrap().cast::<u8>();
        assert_eq!(grown.as_ptr() as usize % 4096, 0);
        let block = heap.shrink(grown, large, small).unwrap().cast::<u8>();
        assert!((0..100).all(|i| *block.as_ptr().add(i) == 7));
        heap.deallocate(block, small);
    }
    assert_eq!(heap.stats().live_objects, 0);
}

#[test]
fn a_limit_is_an_error_and_a_container_may_own_its_heap() {
    let mut bytes = Vec::new_in(heap(Some(1 << 20)));
    assert!(bytes.try_reserve(2 << 20).is_err());
    bytes.resize(1000, 1_u8);
    let mut moved = bytes;
    moved.resize(100_000, 2);
    assert_eq!(moved.iter().filter(|&&byte| byte == 1).count(), 1000);
}

#[cfg(feature = "pools")]
#[test]
fn a_pool_has_so_many_slots_and_takes_them_back_in_any_thread() {
    let pool = freehold::Pool::new(1000, Layout::new::<[u64; 6]>()).unwrap();
    thread::scope(|scope| {
        for _ in 0..3 {
            let boxes: std::vec::Vec<_> = (0..1000_u64)
                .map(|n| Box::new_in([n; 6], &pool))
                .collect();
            assert!(Box::try_new_in([0_u64; 6], &pool).is_err());
            let check = move || assert!((0..1000).zip(&boxes).all(|(n, each)| **each == [n; 6]));
            scope.spawn(check).join().unwrap();
        }
    });
    assert!(pool.allocate(Layout::new::<[u64; 7]>()).is_err());
    assert!(pool.allocate(Layout::from_size_align(8, 64).unwrap()).is_err());
    let mut few = Vec::with_capacity_in(2, &pool);
    few.extend([1_u64, 2, 3, 4]); // grows in its slot
    assert_eq!(few.as_slice(), [1, 2, 3, 4]);
    assert!(few.try_reserve(100).is_err());
}
