// SPDX-License-Identifier: MIT
//! Freehold's malloc as a global allocator. Each thread allocates from its own cache; free slots live in shared bitmaps, one per size
//! class. The engine is linked statically: no `LD_PRELOAD`, no C++ runtime.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: freehold::Freehold = freehold::Freehold;
//!
//! fn main() {
//!     let numbers: Vec<u64> = (0..1000).collect();
//!     assert!(unsafe { freehold::usable_size(numbers.as_ptr().cast()) } >= 8000);
//! }
//! ```
//!
//! The crate is `no_std`, needs Linux with glibc or musl, and a C++20 compiler when it is built. With the feature `override` Freehold
//! takes the place of `malloc`, `free`, `operator new` and `delete`, too, so that the C and C++ libraries of the program use it.
//! The variables of the environment are Freehold's, for example `FREEHOLD_LIMIT_BYTES`.
//!
//! With `FREEHOLD_CHECK=1` misuse by `unsafe` code is reported and ends the process: double frees, frees of foreign and interior
//! pointers, writes beyond a block or to a freed one, and a `Layout` that is not the one of the allocation. With
//! `FREEHOLD_GUARD_RATE=1000` one allocation in a thousand lies between pages that nobody may access.
#![no_std]
#![warn(missing_docs)]

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;

extern "C" {
    fn freehold_rust_allocate(bytes: usize, alignment: usize) -> *mut c_void;
    fn freehold_rust_allocate_zeroed(bytes: usize, alignment: usize) -> *mut c_void;
    fn freehold_rust_deallocate(block: *mut c_void, bytes: usize, alignment: usize);
    fn freehold_rust_reallocate(
        block: *mut c_void,
        old_bytes: usize,
        alignment: usize,
        bytes: usize,
    ) -> *mut c_void;
    fn freehold_rust_usable_size(block: *const c_void) -> usize;
    fn freehold_rust_trim() -> usize;
    fn freehold_rust_idle() -> usize;
    fn freehold_rust_check_all() -> usize;
    fn freehold_rust_set_limit(bytes: usize) -> usize;
    fn freehold_stats(out: *mut Stats, size: usize) -> i32;
    fn freehold_count_begin(on_allocation: i32) -> i32;
    fn freehold_count_end(out: *mut Counts, size: usize) -> i32;
}

/// The allocator, for `#[global_allocator]`. It has no state of its own: all values of this type are the same allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Freehold;

// SAFETY: the engine's blocks are distinct until they are given back, have the size and alignment that was asked for, and may be given
// back by any thread. It does not unwind; what it cannot provide is null.
unsafe impl GlobalAlloc for Freehold {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        freehold_rust_allocate(layout.size(), layout.align()).cast()
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        freehold_rust_deallocate(block.cast(), layout.size(), layout.align())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        freehold_rust_allocate_zeroed(layout.size(), layout.align()).cast()
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        freehold_rust_reallocate(block.cast(), layout.size(), layout.align(), bytes).cast()
    }
}

/// The bytes that the owner of a block may use; 0 if the block is not Freehold's, which checked mode reports as misuse.
///
/// # Safety
/// The block is alive, whichever allocator made it.
pub unsafe fn usable_size(block: *const u8) -> usize {
    freehold_rust_usable_size(block.cast())
}

/// Gives all free memory back to the system now. Returns the bytes given back. Cost: O(free spans), system calls.
pub fn trim() -> usize {
    // SAFETY: any thread, at any time.
    unsafe { freehold_rust_trim() }
}

/// Gives free memory back whose purge delay is over: for event loops that have nothing to do. Returns the bytes given back.
pub fn idle() -> usize {
    // SAFETY: any thread, at any time.
    unsafe { freehold_rust_idle() }
}

/// Limits the memory of blocks together with the free memory that is kept; 0 ends the limit. Beyond it allocations fail.
/// Returns the former limit, 0 if there was none.
pub fn set_limit(bytes: usize) -> usize {
    // SAFETY: any thread, at any time.
    unsafe { freehold_rust_set_limit(bytes) }
}

/// In checked mode (`FREEHOLD_CHECK=1`): looks at all blocks, reports those that were written to beyond their ends or after they were
/// freed, and returns how many there are. 0 without checked mode. A report ends the process, unless `FREEHOLD_CHECK_ABORT=0`.
pub fn check_all() -> usize {
    // SAFETY: any thread, at any time.
    unsafe { freehold_rust_check_all() }
}

/// Calls a function and counts exactly what the calling thread allocates and frees in it; other threads are neither counted nor
/// slower. Counts may nest. A panic in the function goes on, without counts.
///
/// Panics if there is no memory for the count.
pub fn count<T>(function: impl FnOnce() -> T) -> (T, Counts) {
    struct Ends(Counts);
    impl Drop for Ends {
        fn drop(&mut self) {
            // SAFETY: of the count that began below, on this thread; the library fills what is inside the size.
            unsafe { freehold_count_end(&mut self.0, core::mem::size_of::<Counts>()) };
        }
    }
    // SAFETY: any thread, at any time.
    assert!(
        unsafe { freehold_count_begin(0) } == 0,
        "no memory for a count"
    );
    let mut ends = Ends(Counts::default());
    let result = function();
    // SAFETY: as above; not once more by the destructor.
    unsafe { freehold_count_end(&mut ends.0, core::mem::size_of::<Counts>()) };
    let counts = ends.0;
    core::mem::forget(ends);
    (result, counts)
}

/// Asserts that an expression allocates at most so many times: `assert_allocations!(parse(text), 3)` is what `parse` returns.
#[macro_export]
macro_rules! assert_allocations {
    ($expression:expr, $most:expr) => {{
        let (result, counts) = $crate::count(|| $expression);
        let most: u64 = $most;
        assert!(
            counts.allocations <= most,
            "{} allocations in `{}`, at most {}",
            counts.allocations,
            stringify!($expression),
            most
        );
        result
    }};
}

/// What a thread allocated and freed: `freehold_count_t` of `freehold/malloc.h`. Bytes are those of [`usable_size`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    size: usize,
    /// Calls that returned a block, and each realloc of a block.
    pub allocations: u64,
    /// Calls that freed a block, and each realloc of a block.
    pub frees: u64,
    /// Of the blocks that were allocated.
    pub allocated_bytes: u64,
    /// Of the blocks that were freed, also those that are older or another thread's.
    pub freed_bytes: u64,
    /// The most by which allocated bytes exceeded freed ones.
    pub peak_bytes: u64,
}

/// The statistics of the process.
pub fn stats() -> Stats {
    // SAFETY: every member may be zero; the library fills what is inside the size.
    unsafe {
        let mut stats: Stats = core::mem::zeroed();
        freehold_stats(&mut stats, core::mem::size_of::<Stats>());
        stats
    }
}

/// Figures in bytes and counts, as `freehold_stats_t` of `freehold/malloc.h`. Later versions append members.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Stats {
    size: usize,
    version: u32,
    class_count: u32,
    // begin rows: script/check_tables --draw
    /// Address space reserved for the arena.
    pub reserved_bytes: u64,
    /// Of it, readable and writable.
    pub committed_bytes: u64,
    /// Spans that belong to a size class: blocks up to 32 KiB, in use or free.
    pub small_span_bytes: u64,
    /// Page runs in use: blocks above 32 KiB.
    pub run_bytes: u64,
    /// Blocks too large for the arena, mapped one by one.
    pub direct_bytes: u64,
    /// Free spans and runs whose pages were not given back to the system yet.
    pub retained_bytes: u64,
    /// Upper bound of the pages of bitmaps, caches and maps.
    pub metadata_bytes: u64,
    /// Sum of the bytes that thread caches are allowed to hold now.
    pub cached_limit_bytes: u64,
    /// Given back to the system since the start.
    pub purged_bytes: u64,
    /// Calls of madvise that gave memory back, since the start.
    pub purge_calls: u64,
    /// Spans given to a size class, since the start.
    pub span_claims: u64,
    /// Wholly free spans taken back from a size class, since the start.
    pub span_returns: u64,
    /// Times a thread slept for one of Freehold's locks, since the start.
    pub lock_waits: u64,
    /// Thread caches alive now.
    pub threads: u64,
    /// The most thread caches alive at one time.
    pub peak_threads: u64,
    /// Frees by threads whose cache was gone already, since the start.
    pub late_frees: u64,
    // end rows
}

// With `override`: the linker takes the archive's malloc for this reference, before it comes to libc's.
#[cfg(feature = "override")]
#[used]
static MALLOC: unsafe extern "C" fn(usize) -> *mut c_void = {
    extern "C" {
        fn malloc(bytes: usize) -> *mut c_void;
    }
    malloc
};
