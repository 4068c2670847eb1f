/* thread_alloc: an allocator of its own beside the process's malloc, with the interface of K. Knizhnik's article on
   thread-local allocation. For C and C++. What is behind it is chosen at link time, by linking exactly one of
     freehold::thread_alloc              Freehold's engine
     freehold::thread_alloc_owner_pages  the article's allocator: every thread owns its pages (OwnerPagesHeap<>)
   A C++ program moves all of its new and delete onto it in one source file, or in every one:
     #define REDEFINE_DEFAULT_NEW_OPERATOR
     #include "freehold/malloc/thread_alloc.h"

   All functions: any thread, at any time of its life, thread-local destructors and atexit handlers included; not in signal
   handlers. A block may be freed by any thread, also after the thread that allocated it has exited. Blocks of malloc and
   of thread_alloc are not each other's to free.
   Source: K. Knizhnik's thread_alloc; thread_alloc_aligned is added for the aligned forms of operator new. */
#ifndef FREEHOLD_MALLOC_THREAD_ALLOC_H
#define FREEHOLD_MALLOC_THREAD_ALLOC_H

#include <stddef.h>

#ifdef __cplusplus
#define FREEHOLD_NOEXCEPT noexcept
extern "C" {
#else
#define FREEHOLD_NOEXCEPT
#endif

/* Allocates a block of at least `bytes` bytes, aligned to 16; contents are arbitrary. 0 bytes are a block of its own too.
   Returns: the block. Errors: null and errno ENOMEM if memory or address space is exhausted.
   Threads: any. Cost: the engine, 14 instructions from the thread's cache; OwnerPages, up to 128 bytes a few loads and
   stores of the thread's own lines, above that the engine's. No atomic read-modify-write on either fast path. */
__attribute__((malloc, alloc_size(1), warn_unused_result)) void* thread_alloc(size_t bytes) FREEHOLD_NOEXCEPT;

/* The same, aligned to `alignment`. thread_free gives the block back; thread_realloc keeps no alignment above 16.
   Pre: `alignment` is a power of two. Returns, Errors, Threads: as thread_alloc. Cost: the engine's, with both. */
__attribute__((malloc, alloc_size(2), alloc_align(1), warn_unused_result)) void* thread_alloc_aligned(
    size_t alignment, size_t bytes) FREEHOLD_NOEXCEPT;

/* Makes the block one of at least `bytes` bytes, in place where possible; contents are kept as far as they fit. A null
   block is allocated. 0 bytes do not free; the result is a block as thread_alloc(0) gives.
   Pre: `block` is null or a block of these functions that was not freed. Returns: the block, which may have moved; the old
   pointer is then no block any more. Errors: null and errno ENOMEM; the old block is untouched.
   Threads: any, one at a time for each block. Cost: O(1) in place, otherwise thread_alloc, a copy and thread_free. */
__attribute__((alloc_size(2), warn_unused_result)) void* thread_realloc(void* block, size_t bytes) FREEHOLD_NOEXCEPT;

/* Gives a block back. Null is ignored.
   Pre: `block` is null or a block of these functions that was not freed. Errors: a pointer that is seen not to be a block
   ends the process with one line on standard error.
   Threads: any. Cost: the engine, 16 instructions into the thread's cache; OwnerPages, a few loads and stores for a slot of
   the calling thread, one hand-over for each 100 slots of another's. */
void thread_free(void* block) FREEHOLD_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#undef FREEHOLD_NOEXCEPT

#endif

/* Outside the guard: it must work where another header has included this one before. */
#ifdef REDEFINE_DEFAULT_NEW_OPERATOR
#ifndef __cplusplus
#error "REDEFINE_DEFAULT_NEW_OPERATOR is for a C++ source file"
#endif
#include "freehold/malloc/thread_alloc/new_operators.hpp"
#endif
