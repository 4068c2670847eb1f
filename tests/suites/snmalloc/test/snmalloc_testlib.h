// SPDX-License-Identifier: MIT
// The calls of snmalloc's tests, on the system's malloc. Constants and helpers are those of snmalloc's own headers, which
// the sources bring along. No block belongs to snmalloc, so its tests allow sizes that are not its size classes, and know
// nothing of where a block begins.
#ifndef FREEHOLD_SUITES_SNMALLOC_TESTLIB_H
#define FREEHOLD_SUITES_SNMALLOC_TESTLIB_H

#include <malloc.h>
#include <snmalloc/snmalloc_core.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/suites/reallocarr.h"

// C23's; glibc has it since 2.43.
extern "C" void free_sized(void* block, size_t bytes) __attribute__((weak));

namespace snmalloc {

template <ZeroMem zero = ZeroMem::NoZero>
inline void* alloc(size_t bytes) {
  return zero == ZeroMem::YesZero ? ::calloc(1, bytes) : ::malloc(bytes);
}
template <size_t bytes, ZeroMem zero = ZeroMem::NoZero>
inline void* alloc() {
  return alloc<zero>(bytes);
}
inline void dealloc(void* block) { ::free(block); }
inline void dealloc(void* block, size_t bytes) { ::free_sized != nullptr ? ::free_sized(block, bytes) : ::free(block); }
template <size_t bytes>
inline void dealloc(void* block) {
  dealloc(block, bytes);
}

inline bool is_owned(const void*) { return false; }
inline size_t alloc_size(const void* block) {
  return block == nullptr ? SIZE_MAX : ::malloc_usable_size(const_cast<void*>(block));
}
inline size_t remaining_bytes(const void*) { return SIZE_MAX; }
inline void debug_check_empty(bool* = nullptr) {}
inline void debug_in_use(size_t) {}
inline void debug_teardown() {}
inline void cleanup_unused() {}

struct ScopedAllocHandle {
  void* alloc(size_t bytes) { return ::malloc(bytes); }
  void dealloc(void* block) { ::free(block); }
  void dealloc(void* block, size_t bytes) { snmalloc::dealloc(block, bytes); }
  ScopedAllocHandle* operator->() { return this; }
};
inline ScopedAllocHandle get_scoped_allocator() { return {}; }

inline size_t max_small_sizeclass_bits() { return MAX_SMALL_SIZECLASS_BITS; }
inline size_t pal_address_bits() { return DefaultPal::address_bits; }
inline uint64_t pal_tick() { return DefaultPal::tick(); }
inline void pal_pause() { Aal::pause(); }

namespace libc {
inline void* malloc(size_t bytes) { return ::malloc(bytes); }
inline void free(void* block) { ::free(block); }
inline void* calloc(size_t count, size_t bytes) { return ::calloc(count, bytes); }
inline void* realloc(void* block, size_t bytes) { return ::realloc(block, bytes); }
inline size_t malloc_usable_size(const void* block) { return ::malloc_usable_size(const_cast<void*>(block)); }
inline void* __malloc_start_pointer(void*) { return nullptr; }
inline void* __malloc_last_byte_pointer(void*) { return reinterpret_cast<void*>(UINTPTR_MAX); }
inline void* __malloc_end_pointer(void*) { return reinterpret_cast<void*>(UINTPTR_MAX); }
}  // namespace libc

}  // namespace snmalloc

inline void* testlib_malloc(size_t bytes) { return ::malloc(bytes); }
inline void testlib_free(void* block) { ::free(block); }
inline void* testlib_calloc(size_t count, size_t bytes) { return ::calloc(count, bytes); }
inline void* testlib_realloc(void* block, size_t bytes) { return ::realloc(block, bytes); }
inline void* testlib_reallocarray(void* block, size_t count, size_t bytes) { return ::reallocarray(block, count, bytes); }
inline int testlib_reallocarr(void* place, size_t count, size_t bytes) { return ::reallocarr(place, count, bytes); }
inline void* testlib_memalign(size_t alignment, size_t bytes) { return ::memalign(alignment, bytes); }
inline void* testlib_aligned_alloc(size_t alignment, size_t bytes) { return ::aligned_alloc(alignment, bytes); }
inline int testlib_posix_memalign(void** block, size_t alignment, size_t bytes) {
  return ::posix_memalign(block, alignment, bytes);
}
inline size_t testlib_malloc_usable_size(void* block) { return ::malloc_usable_size(block); }
inline size_t testlib_malloc_good_size(size_t bytes) { return bytes; }

#endif
