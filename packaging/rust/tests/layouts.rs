// SPDX-License-Identifier: MIT
//! The four functions of GlobalAlloc by their contract, over sizes and alignments. The program's own allocator is the system's.
use std::alloc::{GlobalAlloc, Layout};

use freehold::Freehold;

/// Both sides of each of the engine's limits: a size class, a page run, a mapping of its own.
const SIZES: [usize; 11] = [
    1,
    16,
    17,
    1000,
    4095,
    4096,
    32 << 10,
    (32 << 10) + 1,
    1 << 20,
    4 << 20,
    (4 << 20) + 1,
];
/// Those of realloc's test, which goes from each to each.
const CHANGES: [usize; 7] = [
    1,
    17,
    4096,
    32 << 10,
    (32 << 10) + 1,
    300_000,
    (4 << 20) + 1,
];
const LARGEST_ALIGNMENT: usize = 1 << 24;

fn alignments() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1), |alignment| {
        (*alignment < LARGEST_ALIGNMENT).then_some(alignment * 2)
    })
}

fn layouts() -> impl Iterator<Item = Layout> {
    alignments()
        .flat_map(|alignment| SIZES.map(|size| Layout::from_size_align(size, alignment).unwrap()))
}

/// Bytes that tell blocks and places apart, at both ends and once for each page.
fn places(size: usize) -> impl Iterator<Item = usize> {
    (0..size).step_by(509).chain([size - 1])
}
fn mark(block: *mut u8, size: usize, seed: u8) {
    places(size).for_each(|at| unsafe { block.add(at).write(seed ^ at as u8) });
}
fn is_marked(block: *const u8, size: usize, seed: u8) -> bool {
    places(size).all(|at| unsafe { block.add(at).read() } == seed ^ at as u8)
}

#[test]
fn alloc_every_layout_is_aligned_distinct_and_large_enough() {
    for layout in layouts() {
        let blocks: Vec<*mut u8> = (0..3).map(|_| unsafe { Freehold.alloc(layout) }).collect();
        for (seed, &block) in blocks.iter().enumerate() {
            assert!(!block.is_null(), "{layout:?}");
            assert_eq!(block as usize % layout.align(), 0, "{layout:?}");
            assert!(
                unsafe { freehold::usable_size(block) } >= layout.size(),
                "{layout:?}"
            );
            mark(block, layout.size(), seed as u8);
        }
        for (seed, &block) in blocks.iter().enumerate() {
            assert!(is_marked(block, layout.size(), seed as u8), "{layout:?}");
            unsafe { Freehold.dealloc(block, layout) };
        }
    }
}

#[test]
fn alloc_zeroed_reused_memory_is_zero() {
    let zeros = vec![0; *SIZES.last().unwrap()];
    for layout in layouts() {
        for _ in 0..2 {
            let block = unsafe { Freehold.alloc_zeroed(layout) };
            assert_eq!(block as usize % layout.align(), 0, "{layout:?}");
            let bytes = unsafe { std::slice::from_raw_parts_mut(block, layout.size()) };
            assert!(bytes == &zeros[..bytes.len()], "{layout:?}");
            bytes.fill(0xaa);
            unsafe { Freehold.dealloc(block, layout) };
        }
    }
}

#[test]
fn realloc_every_change_of_size_keeps_content_and_alignment() {
    for alignment in alignments() {
        for (from, to) in CHANGES
            .iter()
            .flat_map(|&from| CHANGES.map(|to| (from, to)))
        {
            let layout = Layout::from_size_align(from, alignment).unwrap();
            unsafe {
                let block = Freehold.alloc(layout);
                mark(block, from, 1);
                let moved = Freehold.realloc(block, layout, to);
                assert!(
                    !moved.is_null() && moved as usize % alignment == 0,
                    "{layout:?} to {to}"
                );
                let kept = from.min(to);
                assert!(
                    (0..kept)
                        .step_by(509)
                        .all(|at| moved.add(at).read() == 1 ^ at as u8),
                    "{layout:?} to {to}"
                );
                assert!(freehold::usable_size(moved) >= to);
                mark(moved, to, 2);
                Freehold.dealloc(moved, Layout::from_size_align(to, alignment).unwrap());
            }
        }
    }
}

#[test]
fn realloc_aligned_shrunk_far_gives_memory_back() {
    let layout = Layout::from_size_align(1 << 20, 4096).unwrap();
    unsafe {
        let block = Freehold.alloc(layout);
        let small = Freehold.realloc(block, layout, 100);
        assert!(freehold::usable_size(small) < 1 << 19);
        Freehold.dealloc(small, Layout::from_size_align(100, 4096).unwrap());
    }
}

#[test]
fn alloc_beyond_memory_is_null_and_realloc_keeps_the_block() {
    let impossible = isize::MAX as usize - 64;
    for alignment in [8, 64, 4096] {
        let small = Layout::from_size_align(100, alignment).unwrap();
        unsafe {
            assert!(Freehold
                .alloc(Layout::from_size_align(impossible & !4095, alignment).unwrap())
                .is_null());
            assert!(Freehold
                .alloc_zeroed(Layout::from_size_align(impossible & !4095, alignment).unwrap())
                .is_null());
            let block = Freehold.alloc(small);
            mark(block, 100, 3);
            assert!(Freehold.realloc(block, small, impossible & !4095).is_null());
            assert!(is_marked(block, 100, 3));
            Freehold.dealloc(block, small);
        }
    }
}

#[cfg(not(feature = "override"))]
#[test]
fn usable_size_blocks_of_other_allocators_have_none() {
    let block = Box::new([0_u8; 100]);
    assert_eq!(unsafe { freehold::usable_size(block.as_ptr()) }, 0);
}

#[cfg(not(feature = "override"))]
#[test]
fn malloc_without_the_feature_stays_the_systems() {
    extern "C" {
        fn malloc(bytes: usize) -> *mut u8;
        fn free(block: *mut u8);
    }
    unsafe {
        let block = malloc(100);
        assert_eq!(freehold::usable_size(block), 0);
        free(block);
    }
}
