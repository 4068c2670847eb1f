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
//!
//! With the feature `allocator-api2` a [`Heap`] is an `Allocator` of that crate, for the containers of `allocator_api2`, `hashbrown` and
//! others: `Vec::new_in(&heap)`. With `pools` there is `Pool`, too, for objects of one size; a C++ runtime is linked then.
#![no_std]
#![warn(missing_docs)]

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_char, c_void, CStr};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicUsize, Ordering};

#[cfg(feature = "allocator-api2")]
mod allocator;
#[cfg(feature = "pools")]
pub use allocator::Pool;

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
    fn freehold_scope_engine() -> *const c_void;
    fn freehold_heap_create(options: *const HeapOptions) -> *mut c_void;
    fn freehold_heap_destroy(heap: *mut c_void);
    fn freehold_heap_stats(heap: *mut c_void, out: *mut HeapStats, size: usize) -> i32;
    fn freehold_heap_enter(heap: *mut c_void) -> i32;
    fn freehold_heap_leave();
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

/// Limits the memory of blocks together with the free memory that is kept; `None` ends the limit. Beyond it allocations fail.
/// Returns the former limit.
pub fn set_limit(bytes: Option<usize>) -> Option<usize> {
    // SAFETY: any thread, at any time.
    let former = unsafe { freehold_rust_set_limit(bytes.unwrap_or(usize::MAX)) };
    (former != usize::MAX).then_some(former)
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

/// A private heap: while a thread is in a scope of it, the global allocator takes the thread's blocks from the heap.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: freehold::Freehold = freehold::Freehold;
/// let heap = freehold::Heap::new(core::ffi::CStr::from_bytes_with_nul(b"orders\0").unwrap(), Some(64 << 20)).unwrap();
/// let numbers: Vec<u64> = {
///     let _scope = heap.enter();
///     (0..1000).collect()
/// };
/// assert!(heap.stats().live_bytes >= 8000);
/// drop(numbers); // anywhere, in any thread
/// ```
///
/// Blocks may outlive the heap: its memory goes back with the last of them.
#[derive(Debug)]
pub struct Heap {
    heap: *mut c_void,
    scopes: AtomicUsize,
}

// SAFETY: the heap is one for any thread.
unsafe impl Send for Heap {}
unsafe impl Sync for Heap {}

impl Heap {
    /// A new heap, which takes no memory before its first block. `limit_bytes`: of what it uses. `None`: there is no memory
    /// for it.
    pub fn new(name: &'static CStr, limit_bytes: Option<usize>) -> Option<Heap> {
        let options = HeapOptions {
            size: core::mem::size_of::<HeapOptions>(),
            name: name.as_ptr(),
            limit_bytes: limit_bytes.map_or(0, |bytes| bytes.max(1)),
            ..HeapOptions::default()
        };
        // SAFETY: the options are whole, and the name lives for ever.
        let heap = unsafe { freehold_heap_create(&options) };
        (!heap.is_null()).then_some(Heap {
            heap,
            scopes: AtomicUsize::new(0),
        })
    }

    /// The thread's blocks come from the heap until the guard is dropped. Guards are dropped in the reverse order. Panics if there
    /// is no memory for the scope. Where the heap refuses because of its limit, the allocation fails: for this scope alone.
    pub fn enter(&self) -> HeapScope<'_> {
        self.scopes.fetch_add(1, Ordering::Relaxed);
        HeapScope::of(self.heap, Some(self))
    }

    /// The figures of the heap at one instant.
    pub fn stats(&self) -> HeapStats {
        let mut stats = HeapStats::default();
        // SAFETY: the library fills what is inside the size.
        unsafe {
            freehold_heap_stats(self.heap, &mut stats, core::mem::size_of::<HeapStats>());
        }
        stats
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        if *self.scopes.get_mut() == 0 {
            // SAFETY: no thread is in a scope of it; one whose guard was forgotten may be, and has it for ever.
            unsafe { freehold_heap_destroy(self.heap) };
        }
    }
}

/// A scope of a [`Heap`], or of none, of the thread that made it.
#[derive(Debug)]
pub struct HeapScope<'a> {
    heap: Option<&'a Heap>,
    not_send: PhantomData<*mut c_void>,
}

impl<'a> HeapScope<'a> {
    /// Within a scope of a heap: the thread's blocks come from none until the guard is dropped, for what outlives the scope.
    pub fn none() -> HeapScope<'static> {
        HeapScope::of(core::ptr::null_mut(), None)
    }

    fn of(heap: *mut c_void, of: Option<&'a Heap>) -> HeapScope<'a> {
        // SAFETY: the heap is alive as long as the guard, or null. The first call has the linker take what the others need.
        let entered = unsafe { !freehold_scope_engine().is_null() && freehold_heap_enter(heap) == 0 };
        assert!(entered, "no memory for a scope");
        HeapScope {
            heap: of,
            not_send: PhantomData,
        }
    }
}

impl Drop for HeapScope<'_> {
    fn drop(&mut self) {
        // SAFETY: the guard is of this thread.
        unsafe { freehold_heap_leave() };
        if let Some(heap) = self.heap {
            heap.scopes.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// `freehold_heap_options_t` of `freehold/heap.h`.
#[repr(C)]
struct HeapOptions {
    size: usize,
    kind: i32,
    waits: i32,
    name: *const c_char,
    limit_bytes: usize,
    on_limit: *const c_void,
    on_limit_context: *const c_void,
    binds_node: i32,
    node: i32,
}

impl Default for HeapOptions {
    fn default() -> Self {
        // SAFETY: a member that is zero is as if it were not given.
        unsafe { core::mem::zeroed() }
    }
}

/// Figures of a heap in bytes and counts: `freehold_heap_stats_t` of `freehold/heap.h`. Later versions append members.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct HeapStats {
    size: usize,
    name: *const c_char,
    /// Blocks that are in use.
    pub live_objects: u64,
    /// Of the slots of these blocks.
    pub live_bytes: u64,
    /// Of pages that belong to a size class, and of large blocks: what the limit counts.
    pub used_bytes: u64,
    /// Of slabs and large blocks: what the engine handed out.
    pub held_bytes: u64,
    /// `u64::MAX`: no limit.
    pub limit_bytes: u64,
    /// Of 64 KiB.
    pub slabs: u64,
    /// Blocks that have memory of their own.
    pub large_blocks: u64,
    /// Operations that met another thread.
    pub conflicts: u64,
    /// The most that `used_bytes` ever was.
    pub peak_bytes: u64,
}

impl Default for HeapStats {
    fn default() -> Self {
        // SAFETY: every member may be zero.
        unsafe { core::mem::zeroed() }
    }
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
