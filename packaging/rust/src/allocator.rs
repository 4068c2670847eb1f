// SPDX-License-Identifier: MIT
//! [`Allocator`] for heaps and pools, for the containers of `allocator_api2`, `hashbrown` and others.
use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::{self, NonNull};

use allocator_api2::alloc::{AllocError, Allocator};

use crate::Heap;

extern "C" {
    fn freehold_heap_malloc(heap: *mut c_void, bytes: usize) -> *mut c_void;
    fn freehold_heap_aligned_alloc(heap: *mut c_void, align: usize, bytes: usize) -> *mut c_void;
    fn freehold_heap_realloc(heap: *mut c_void, block: *mut c_void, bytes: usize) -> *mut c_void;
    fn freehold_heap_free(heap: *mut c_void, block: *mut c_void);
    fn freehold_heap_free_sized(heap: *mut c_void, block: *mut c_void, bytes: usize);
}

/// What `freehold_heap_malloc` aligns every block to.
const HEAP_ALIGNMENT: usize = 16;

fn block_of(start: *mut c_void, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
    NonNull::new(ptr::slice_from_raw_parts_mut(start.cast(), layout.size())).ok_or(AllocError)
}

/// Implements `Allocator` by `take(layout)`, `give_back(block, layout)` and `resize(block, old, new)` of a type; null is `AllocError`.
macro_rules! allocator {
    ($(#[$doc:meta])* $type:ty) => {
        $(#[$doc])*
        // SAFETY: a block stays where it is until it is given back or its memory ends, wherever the allocator itself is moved to.
        unsafe impl Allocator for $type {
            fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
                block_of(self.take(layout), layout)
            }
            unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
                self.give_back(block.as_ptr().cast(), layout)
            }
            unsafe fn grow(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
                block_of(self.resize(block.as_ptr().cast(), old, new), new)
            }
            unsafe fn shrink(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
                self.grow(block, old, new)
            }
        }
    };
}

allocator! {
    /// Blocks come from the heap, whatever scope the thread is in: `Vec::new_in(&heap)`. Errors: `AllocError` where the heap's limit
    /// or memory stands against it. Threads: any. A container that owns its heap (`Vec::new_in(heap)`) works, too.
    Heap
}

impl Heap {
    fn take(&self, layout: Layout) -> *mut c_void {
        // SAFETY: the heap is alive, and an alignment of a layout is a power of two.
        unsafe {
            if layout.align() <= HEAP_ALIGNMENT {
                freehold_heap_malloc(self.heap, layout.size())
            } else {
                freehold_heap_aligned_alloc(self.heap, layout.align(), layout.size())
            }
        }
    }

    unsafe fn give_back(&self, block: *mut c_void, layout: Layout) {
        if layout.align() <= HEAP_ALIGNMENT {
            freehold_heap_free_sized(self.heap, block, layout.size())
        } else {
            freehold_heap_free(self.heap, block)
        }
    }

    unsafe fn resize(&self, block: *mut c_void, old: Layout, new: Layout) -> *mut c_void {
        if old.align().max(new.align()) <= HEAP_ALIGNMENT {
            return freehold_heap_realloc(self.heap, block, new.size());
        }
        let moved = self.take(new);
        if !moved.is_null() {
            ptr::copy_nonoverlapping(block.cast::<u8>(), moved.cast(), old.size().min(new.size()));
            self.give_back(block, old);
        }
        moved
    }
}

#[cfg(feature = "pools")]
pub use pools::Pool;

#[cfg(feature = "pools")]
mod pools {
    use super::{block_of, c_void, ptr, AllocError, Allocator, Layout, NonNull};

    extern "C" {
        fn freehold_rust_pool_create(slots: usize, bytes: usize, alignment: usize) -> *mut c_void;
        fn freehold_rust_pool_destroy(pool: *mut c_void);
        fn freehold_rust_pool_acquire(pool: *mut c_void) -> *mut c_void;
        fn freehold_rust_pool_release(pool: *mut c_void, slot: *mut c_void);
    }

    /// A bounded number of slots of one size, for single objects and the nodes of containers: any thread may take any free slot.
    ///
    /// ```
    /// use allocator_api2::boxed::Box;
    /// let orders = freehold::Pool::new(10_000, core::alloc::Layout::new::<[u64; 6]>()).unwrap();
    /// let order = Box::new_in([1_u64; 6], &orders);
    /// assert_eq!(order[5], 1);
    /// ```
    ///
    /// `AllocError`: every slot is in use, or a layout does not fit into one. Threads: any. Cost: a call, and an atomic for every 64
    /// slots.
    #[derive(Debug)]
    pub struct Pool {
        pool: *mut c_void,
        slot: Layout,
    }

    // SAFETY: the pool is one for any thread.
    unsafe impl Send for Pool {}
    unsafe impl Sync for Pool {}

    impl Pool {
        /// A pool of so many slots, each of which `slot` fits into. It takes address space for all, and memory as slots are used.
        /// `None`: there is none.
        pub fn new(slots: usize, slot: Layout) -> Option<Pool> {
            let (most, bytes) = (slots.max(1), slot.size().max(1));
            // SAFETY: a slot at least, of a byte at least; a layout's alignment is a power of two.
            let pool = unsafe { freehold_rust_pool_create(most, bytes, slot.align()) };
            (!pool.is_null()).then_some(Pool { pool, slot })
        }

        fn serves(&self, layout: Layout) -> bool {
            layout.size() <= self.slot.size() && layout.align() <= self.slot.align()
        }

        fn take(&self, layout: Layout) -> *mut c_void {
            if !self.serves(layout) {
                return ptr::null_mut();
            }
            // SAFETY: the pool is alive.
            unsafe { freehold_rust_pool_acquire(self.pool) }
        }

        unsafe fn give_back(&self, slot: *mut c_void, _: Layout) {
            freehold_rust_pool_release(self.pool, slot)
        }

        unsafe fn resize(&self, slot: *mut c_void, _: Layout, new: Layout) -> *mut c_void {
            if self.serves(new) {
                slot
            } else {
                ptr::null_mut()
            }
        }
    }

    impl Drop for Pool {
        fn drop(&mut self) {
            // SAFETY: blocks borrow the pool, or own it: none is used any more.
            unsafe { freehold_rust_pool_destroy(self.pool) }
        }
    }

    allocator!(Pool);
}
