// SPDX-License-Identifier: MIT
/* Scopes of private heaps, for C: the malloc of a thread takes its blocks from a heap for a time. The program's malloc must
   be Freehold's. freehold/heap_scope.hpp is the same for C++. Guide: docs/heap-scopes.md. */
#ifndef FREEHOLD_HEAP_SCOPE_H
#define FREEHOLD_HEAP_SCOPE_H

#include "freehold/heap.h"

#ifdef __cplusplus
#define FREEHOLD_NOEXCEPT noexcept
extern "C" {
#else
#define FREEHOLD_NOEXCEPT
#endif

/// From now on every malloc, calloc, strdup and operator new of the calling thread, in whatever library, takes its block
/// from the heap, until freehold_heap_leave(). Scopes nest. free and realloc take the blocks back in any thread, in a scope
/// or not; what realloc moves goes where a new block would be. Where the heap refuses, malloc returns null. The end of the
/// thread ends its scopes; longjmp does not.
/// @param heap  a shared heap; null: no heap, for a callee whose blocks outlive the scope around it
/// @return 0. Errors: -1 and errno EINVAL for an owner-locked heap, ENOMEM, ENOTSUP if malloc is not Freehold's.
/// Cost: some nanoseconds.
int freehold_heap_enter(freehold_heap_t* heap) FREEHOLD_NOEXCEPT;
/// Ends the scope of the calling thread's last freehold_heap_enter() that succeeded.
void freehold_heap_leave(void) FREEHOLD_NOEXCEPT;

/// As freehold_heap_release_all(), whoever may hold blocks: what plain code still has is no block any more.
/// @param heap  the heap
void freehold_heap_end_all(freehold_heap_t* heap) FREEHOLD_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#undef FREEHOLD_NOEXCEPT

#endif
