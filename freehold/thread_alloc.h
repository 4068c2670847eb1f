// SPDX-License-Identifier: MIT
/// @file
/// thread_alloc: an allocator beside the process's malloc, with the interface of K. Knizhnik's article on thread-local
/// allocation. For C and C++.
///
///     struct message* m = thread_alloc(sizeof *m);
///     thread_free(m);  // by any thread
///
/// The implementation is chosen at link time, by linking exactly one of
///     freehold::thread_alloc              Freehold's engine
///     freehold::thread_alloc_owner_pages  the article's design on the engine: every thread owns its pages
///     freehold::thread_alloc_article      the article's allocator: the same to the letter, on the process's malloc
/// A C++ program moves all of its new and delete onto it in one source file, or in every one:
///     #define FREEHOLD_REDEFINE_NEW  // or REDEFINE_DEFAULT_NEW_OPERATOR, the article's word
///     #include "freehold/thread_alloc.h"
///
/// All functions: any thread, at any time of its life, also in thread-local destructors and atexit handlers; not in signal
/// handlers. A block may be freed by any thread, also after the thread that allocated it has exited. Do not free a block of
/// malloc with thread_free, nor a block of thread_alloc with free.
/// Source: K. Knizhnik's thread_alloc; thread_alloc_aligned is added for the aligned forms of operator new.
#ifndef FREEHOLD_THREAD_ALLOC_H
#define FREEHOLD_THREAD_ALLOC_H

#include <stddef.h>

#ifdef __cplusplus
#define FREEHOLD_NOEXCEPT noexcept
extern "C" {
#else
#define FREEHOLD_NOEXCEPT
#endif

/// Allocates a block, aligned to 16 bytes; its contents are arbitrary.
/// @param bytes  the least size of the block; 0 is allowed and gives a separate block
/// @return the block. Errors: null and errno ENOMEM if memory or address space is exhausted.
/// Threads: any. Cost: the engine, 14 instructions from the thread's cache; OwnerPages, up to 128 bytes a few loads and
/// stores of the thread's own lines, above that the engine's or malloc's. No atomic read-modify-write on a fast path.
__attribute__((malloc, alloc_size(1), warn_unused_result)) void* thread_alloc(size_t bytes) FREEHOLD_NOEXCEPT;

/// Allocates a block with an alignment of the caller's. thread_free frees the block; thread_realloc keeps no alignment above
/// 16 bytes.
/// @param alignment  in bytes. Pre: a power of two
/// @param bytes      the least size of the block
/// @return the block. Errors: as thread_alloc.
/// Threads: any. Cost: the engine's, or malloc's.
__attribute__((malloc, alloc_size(2), alloc_align(1), warn_unused_result)) void* thread_alloc_aligned(
    size_t alignment, size_t bytes) FREEHOLD_NOEXCEPT;

/// Changes the size of a block, in place where possible; its contents are kept as far as they fit.
/// @param block  null, which acts as thread_alloc. Or a block of these functions that was not freed
/// @param bytes  the least size after it; 0 does not free, the result is a block as thread_alloc(0) gives
/// @return the block, which may have moved; the old pointer is then invalid. Errors: null and errno ENOMEM; the old block is
///         unchanged.
/// Threads: any, one at a time for each block. Cost: O(1) in place, otherwise thread_alloc, a copy and thread_free.
__attribute__((alloc_size(2), warn_unused_result)) void* thread_realloc(void* block, size_t bytes) FREEHOLD_NOEXCEPT;

/// Frees a block.
/// @param block  null, which is ignored. Or a block of these functions that was not freed
/// Errors: misuse that is detected ends the process with one line on standard error.
/// Threads: any. Cost: the engine, 16 instructions into the thread's cache; OwnerPages, a few loads and stores for a slot of
/// the calling thread, one hand-over for each 100 slots of another's; the article's, one for each slot.
void thread_free(void* block) FREEHOLD_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#undef FREEHOLD_NOEXCEPT

#endif

/* Outside the guard: it must work where another header has included this one before. */
#if defined(FREEHOLD_REDEFINE_NEW) || (defined(REDEFINE_DEFAULT_NEW_OPERATOR) && defined(__cplusplus))
#ifndef __cplusplus
#error "FREEHOLD_REDEFINE_NEW is for a C++ source file"
#endif
#include "freehold/thread_alloc/new_operators.hpp"
#endif
