/* Private heaps for C: memory of a subsystem's or an object's own, with its own contention, limit and figures, dropped all
   at once. freehold/heap/private_heap.hpp and owner_locked_heap.hpp are the same for C++.

     freehold_heap_options options = {.size = sizeof options};
     options.name = "orders";
     freehold_heap* heap = freehold_heap_create(&options);
     char* text = freehold_heap_malloc(heap, 100);
     freehold_heap_destroy(heap);  // ends text, too

   A block belongs to the heap that gave it, and to no other heap's nor malloc's free. A checked build finds what is given
   back to the wrong heap, twice, or from its middle, and ends the process with one line; otherwise that is undefined.
   Threads: a shared heap, any thread in any function but create's and destroy's; an owner-locked one, one thread at a time
   in all of its functions. Not in signal handlers. */
#ifndef FREEHOLD_HEAP_FREEHOLD_HEAP_H
#define FREEHOLD_HEAP_FREEHOLD_HEAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define FREEHOLD_NOEXCEPT noexcept
extern "C" {
#else
#define FREEHOLD_NOEXCEPT
#endif

typedef struct freehold_heap freehold_heap;

enum freehold_heap_kind {
  FREEHOLD_HEAP_SHARED = 0,      /* for any thread: PrivateHeap */
  FREEHOLD_HEAP_OWNER_LOCKED = 1 /* for one thread at a time, which the caller sees to: OwnerLockedHeap */
};

/* What is zero is as if it were not said. */
typedef struct freehold_heap_options {
  size_t size;        /* sizeof(freehold_heap_options): later versions append */
  int kind;           /* of freehold_heap_kind */
  int waits;          /* not 0: an allocation that the limit stands against waits until memory comes back; shared only */
  const char* name;   /* for reports; lives as long as the heap. Null: "" */
  size_t limit_bytes; /* of pages in use and large blocks; 0: none */
  /* Called when the limit stands against `bytes`; not 0: try again. May free blocks of the heap. Null: nobody is asked. */
  int (*on_limit)(void* context, size_t bytes);
  void* on_limit_context;
  /* Not 0: the heap's pages are to lie on memory node (NUMA) `node`; nothing happens where the machine has one node or not
     this one. Programs that were compiled before these two pass a smaller `size`. */
  int binds_node;
  int node;
} freehold_heap_options;

/* Units: bytes, but for counts. */
typedef struct freehold_heap_stats {
  const char* name;
  uint64_t live_objects;
  uint64_t live_bytes;  /* of their slots, rounded up */
  uint64_t used_bytes;  /* of pages that belong to a size class, and of large blocks: what the limit counts */
  uint64_t held_bytes;  /* what the engine handed out */
  uint64_t limit_bytes; /* UINT64_MAX: none */
  uint64_t slabs;
  uint64_t large_blocks;
  uint64_t conflicts; /* operations that met another thread; 0 for the owner-locked kind */
} freehold_heap_stats;

/* A new heap, as the options say; null: a shared one without limit. It takes no memory before its first block.
   Errors: null and errno EINVAL for options that contradict themselves or that this version does not know, ENOMEM.
   Threads: any. Cost: an allocation of 512 bytes; a shared heap, a lock for a handful of instructions. */
__attribute__((warn_unused_result)) freehold_heap* freehold_heap_create(const freehold_heap_options* options)
    FREEHOLD_NOEXCEPT;

/* Ends the heap with all its blocks. Null is ignored. Pre: nobody uses the heap or a block of it any more.
   Threads: any one. Cost: a call to the engine for each slab of 64 KiB and each large block, however many objects live. */
void freehold_heap_destroy(freehold_heap* heap) FREEHOLD_NOEXCEPT;

/* Allocates a block of at least `bytes` bytes, aligned to 16; contents are arbitrary. 0 bytes are a block of its own too.
   Errors: null and errno ENOMEM: the limit (after on_limit and waiting, as the options say) or memory stands against it.
   Cost: shared, one atomic exchange and one store on the CPU's own line; owner-locked, a handful of instructions. */
__attribute__((malloc, alloc_size(2), warn_unused_result)) void* freehold_heap_malloc(freehold_heap* heap,
                                                                                      size_t bytes) FREEHOLD_NOEXCEPT;

/* The same for `count` times `bytes` bytes, which are zero. Errors: as freehold_heap_malloc, also if the product is too
   large for size_t. */
__attribute__((malloc, alloc_size(2, 3), warn_unused_result)) void* freehold_heap_calloc(freehold_heap* heap, size_t count,
                                                                                         size_t bytes) FREEHOLD_NOEXCEPT;

/* The same as freehold_heap_malloc, aligned to `alignment`. freehold_heap_free gives the block back, not free_sized.
   Errors: null and errno EINVAL if the alignment is no power of two, else as freehold_heap_malloc. */
__attribute__((malloc, alloc_size(3), warn_unused_result)) void* freehold_heap_aligned_alloc(freehold_heap* heap,
                                                                                             size_t alignment,
                                                                                             size_t bytes) FREEHOLD_NOEXCEPT;

/* Makes the block one of at least `bytes` bytes, aligned to 16; contents are kept as far as they fit. A null block is
   allocated. 0 bytes do not free. Returns: the block, which may have moved; the old pointer is then no block any more.
   Errors: null and errno ENOMEM; the old block is untouched. Pre: `block` is null or a block of this heap.
   Cost: O(1) in its place, otherwise malloc, a copy and free. */
__attribute__((alloc_size(3), warn_unused_result)) void* freehold_heap_realloc(freehold_heap* heap, void* block,
                                                                               size_t bytes) FREEHOLD_NOEXCEPT;

/* Gives a block back. Null is ignored. Pre: `block` is null or a block of this heap. */
void freehold_heap_free(freehold_heap* heap, void* block) FREEHOLD_NOEXCEPT;
/* The same where the size is known, which saves a look at a cache line. Pre: as freehold_heap_free, and `bytes` is the size
   that the block was allocated with by malloc or realloc, or the product by calloc. */
void freehold_heap_free_sized(freehold_heap* heap, void* block, size_t bytes) FREEHOLD_NOEXCEPT;

/* The bytes of a block that may be used: at least what was asked for; 0 for null. Pre: as freehold_heap_free. */
size_t freehold_heap_usable_size(freehold_heap* heap, const void* block) FREEHOLD_NOEXCEPT;

/* Ends every block; the heap goes on. Threads: while no other one uses blocks of this heap. Cost: as destroy. */
void freehold_heap_release_all(freehold_heap* heap) FREEHOLD_NOEXCEPT;

/* Takes memory for `bytes` more in advance. Returns: 0, or -1 and errno ENOMEM: there is none, or the limit does not allow
   it. */
int freehold_heap_reserve(freehold_heap* heap, size_t bytes) FREEHOLD_NOEXCEPT;

/* Gives memory that is wholly free back to the engine. Returns: bytes. Cost: O(free blocks). */
size_t freehold_heap_trim(freehold_heap* heap) FREEHOLD_NOEXCEPT;

/* Fills the first `size` bytes of `out`: sizeof(freehold_heap_stats), or less from a program of an older version. Returns:
   0, or -1 and errno EINVAL: `size` is more than this version knows. Cost: a shared heap, O(CPUs) while it is locked. */
int freehold_heap_get_stats(freehold_heap* heap, freehold_heap_stats* out, size_t size) FREEHOLD_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#undef FREEHOLD_NOEXCEPT

#endif
