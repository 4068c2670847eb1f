// SPDX-License-Identifier: MIT
/* Private heaps for C: memory of a subsystem's or an object's own. Only its users contend for it, it can have a limit and
   has statistics, and all of it can be freed at once. freehold/heap.hpp is the same for C++.

     freehold_heap_options_t options = {.size = sizeof options};
     options.name = "orders";
     freehold_heap_t* heap = freehold_heap_create(&options);
     char* text = freehold_heap_malloc(heap, 100);
     freehold_heap_destroy(heap);  // ends text, too

   A block belongs to the heap that allocated it; no other heap's free and not malloc's takes it. A checked build finds a
   block that is freed to the wrong heap, twice, or from its middle, and ends the process with one line; otherwise that is
   undefined. Threads: a shared heap, any thread in any function but create's and destroy's; an owner-locked one, one thread
   at a time in all of its functions. Not in signal handlers. Guide: docs/heaps.md. */
#ifndef FREEHOLD_HEAP_H
#define FREEHOLD_HEAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define FREEHOLD_NOEXCEPT noexcept
extern "C" {
#else
#define FREEHOLD_NOEXCEPT
#endif

/// A limit that is none: of time, of bytes, of a number.
#define FREEHOLD_NO_LIMIT UINT64_MAX

/// A private heap.
typedef struct freehold_heap freehold_heap_t;

/// Which threads may use a heap.
enum freehold_heap_kind {
  FREEHOLD_HEAP_SHARED = 0,       ///< any thread: PrivateHeap
  FREEHOLD_HEAP_OWNER_LOCKED = 1  ///< one thread at a time, which the caller must see to: OwnerLockedHeap
};

/// The options that a heap is made with. A member that is 0 has its default.
typedef struct freehold_heap_options_t {
  /// sizeof(freehold_heap_options_t): later versions append members.
  size_t size;
  int kind;  ///< one of freehold_heap_kind
  /// Not 0: an allocation that would exceed the limit waits until memory comes back. Shared heaps only.
  int waits;
  const char* name;    ///< for reports; must live as long as the heap. Null: ""
  size_t limit_bytes;  ///< the limit of pages in use and large blocks; default: FREEHOLD_NO_LIMIT
  /// Called when `bytes` would exceed the limit; not 0: try again. May free blocks of the heap. Null: no call.
  int (*on_limit)(void* context, size_t bytes);
  void* on_limit_context;  ///< the first argument of on_limit
  /// Not 0: the heap's pages are to lie on memory node (NUMA) `node`; nothing happens where the machine has one node or not
  /// this one. Programs that were compiled before this member and `node` existed pass a smaller `size`.
  int binds_node;
  /// See binds_node.
  int node;
} freehold_heap_options_t;

/// A snapshot of one heap. Sizes are in bytes.
typedef struct freehold_heap_stats_t {
  size_t size;            ///< bytes of this struct that the library filled; the rest of the caller's struct is zero
  const char* name;       ///< as the options gave it
  uint64_t live_objects;  ///< blocks that are in use
  uint64_t live_bytes;    ///< bytes of their slots
  uint64_t used_bytes;    ///< bytes of pages that belong to a size class, and of large blocks: what the limit counts
  uint64_t held_bytes;    ///< of slabs and large blocks: what the engine handed out
  uint64_t limit_bytes;   ///< or FREEHOLD_NO_LIMIT
  uint64_t slabs;         ///< of 64 KiB
  uint64_t large_blocks;  ///< blocks that have memory of their own
  uint64_t conflicts;     ///< operations that met another thread; 0 for the owner-locked kind
  uint64_t peak_bytes;    ///< the most that used_bytes ever was
} freehold_heap_stats_t;

/// A new heap. It takes no memory before its first block.
/// @param options  null: a shared heap without a limit
/// @return the heap. Errors: null and errno EINVAL for options that contradict themselves or that this version does not
/// know, ENOMEM. Threads: any. Cost: an allocation of 512 bytes; a shared heap, a lock for a handful of instructions.
__attribute__((warn_unused_result)) freehold_heap_t* freehold_heap_create(const freehold_heap_options_t* options)
    FREEHOLD_NOEXCEPT;

/// Ends the heap with all its blocks; after freehold_heap_enter() those in use stay, with their memory, until they are
/// freed.
/// @param heap  a heap, or null
/// Pre: no thread uses the heap any more, nor, without freehold_heap_enter(), a block of it. Threads: any one. Cost: a call
/// to the engine for each slab of 64 KiB and each large block, however many objects live.
void freehold_heap_destroy(freehold_heap_t* heap) FREEHOLD_NOEXCEPT;

/// A block of at least `bytes` bytes, aligned to 16; its contents are arbitrary.
/// @param heap   the heap
/// @param bytes  size; 0 bytes are a separate block, too
/// @return the block. Errors: null and errno ENOMEM: the limit (after on_limit and waiting, as the options say) or memory
/// stands against it. Cost: shared, two stores and two loads on the CPU's own line, or one atomic exchange and one store;
/// owner-locked, a handful of instructions.
__attribute__((malloc, alloc_size(2), warn_unused_result)) void* freehold_heap_malloc(freehold_heap_t* heap,
                                                                                      size_t bytes) FREEHOLD_NOEXCEPT;

/// A block of `count` times `bytes` bytes, which are zero.
/// @param heap   the heap
/// @param count  the number of elements
/// @param bytes  the size of each
/// @return as freehold_heap_malloc. Errors: as freehold_heap_malloc, also if the product is too large for size_t.
__attribute__((malloc, alloc_size(2, 3), warn_unused_result)) void* freehold_heap_calloc(freehold_heap_t* heap, size_t count,
                                                                                         size_t bytes) FREEHOLD_NOEXCEPT;

/// As freehold_heap_malloc with an alignment. freehold_heap_free takes the block back, not free_sized.
/// @param heap       the heap
/// @param alignment  a power of two
/// @param bytes      size
/// @return as freehold_heap_malloc. Errors: null and errno EINVAL if the alignment is no power of two, else as
/// freehold_heap_malloc.
__attribute__((malloc, alloc_size(3), warn_unused_result)) void* freehold_heap_aligned_alloc(freehold_heap_t* heap,
                                                                                             size_t alignment,
                                                                                             size_t bytes) FREEHOLD_NOEXCEPT;

/// Makes a block one of at least `bytes` bytes, aligned to 16; contents are kept as far as they fit.
/// @param heap   the heap
/// @param block  a block of this heap; null: as freehold_heap_malloc
/// @param bytes  the new size; 0 does not free
/// @return the block, which may have moved; the old pointer is then no block any more. Errors: null and errno ENOMEM; the
/// old block is untouched. Cost: O(1) in its place, otherwise malloc, a copy and free.
__attribute__((alloc_size(3), warn_unused_result)) void* freehold_heap_realloc(freehold_heap_t* heap, void* block,
                                                                               size_t bytes) FREEHOLD_NOEXCEPT;

/// Frees a block.
/// @param heap   the heap
/// @param block  a block of this heap, or null
void freehold_heap_free(freehold_heap_t* heap, void* block) FREEHOLD_NOEXCEPT;
/// The same where the size is known, which saves a look at a cache line.
/// @param heap   the heap
/// @param block  a block of this heap, or null
/// @param bytes  the size that the block was allocated with by malloc or realloc, or the product by calloc
void freehold_heap_free_sized(freehold_heap_t* heap, void* block, size_t bytes) FREEHOLD_NOEXCEPT;

/// The bytes of a block that may be used.
/// @param heap   the heap
/// @param block  a block of this heap, or null
/// @return at least what was asked for; 0 for null.
size_t freehold_heap_usable_size(freehold_heap_t* heap, const void* block) FREEHOLD_NOEXCEPT;

/// Ends every block; the heap goes on. Refused after freehold_heap_enter() if blocks are in use, which plain code may hold.
/// @param heap  the heap
/// @return 0, or these blocks. Threads: while no other one uses blocks of this heap. Cost: as destroy.
size_t freehold_heap_release_all(freehold_heap_t* heap) FREEHOLD_NOEXCEPT;

/// Takes memory in advance.
/// @param heap   the heap
/// @param bytes  how much more than is in use
/// @return 0. Errors: -1 and errno ENOMEM: there is no memory, or the limit does not allow it.
int freehold_heap_reserve(freehold_heap_t* heap, size_t bytes) FREEHOLD_NOEXCEPT;

/// Gives memory that is wholly free back to the engine.
/// @param heap  the heap
/// @return bytes. Cost: O(free blocks).
size_t freehold_heap_trim(freehold_heap_t* heap) FREEHOLD_NOEXCEPT;

/// Writes the statistics of the heap.
/// @param heap  the heap
/// @param out   where to
/// @param size  sizeof(freehold_heap_stats_t) as the program was compiled; may be smaller or larger than the library's
/// @return 0. Errors: -1 and errno EINVAL: `out` is null, or too small for its first member. Cost: a shared heap, O(CPUs)
/// while it is locked.
int freehold_heap_stats(freehold_heap_t* heap, freehold_heap_stats_t* out, size_t size) FREEHOLD_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#undef FREEHOLD_NOEXCEPT

#endif
