// SPDX-License-Identifier: MIT
#include "freehold/base/poison.hpp"

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define FREEHOLD_VALGRIND 1
#endif

namespace freehold::base {

#if defined(FREEHOLD_VALGRIND)

bool under_memcheck() noexcept { return RUNNING_ON_VALGRIND != 0; }
void memcheck_on_allocate(const void* start, std::size_t bytes) noexcept { VALGRIND_MALLOCLIKE_BLOCK(start, bytes, 0, 0); }
void memcheck_on_free(const void* start) noexcept { VALGRIND_FREELIKE_BLOCK(start, 0); }
void memcheck_poison(const void* start, std::size_t bytes) noexcept {
  static_cast<void>(VALGRIND_MAKE_MEM_NOACCESS(start, bytes));
}
void memcheck_unpoison(const void* start, std::size_t bytes) noexcept {
  static_cast<void>(VALGRIND_MAKE_MEM_UNDEFINED(start, bytes));
}
void memcheck_define(const void* start, std::size_t bytes) noexcept {
  static_cast<void>(VALGRIND_MAKE_MEM_DEFINED(start, bytes));
}
void memcheck_create_heap(const void* heap) noexcept { VALGRIND_CREATE_MEMPOOL(heap, 0, 0); }
void memcheck_destroy_heap(const void* heap) noexcept { VALGRIND_DESTROY_MEMPOOL(heap); }
void memcheck_on_allocate_in(const void* heap, const void* start, std::size_t bytes) noexcept {
  VALGRIND_MEMPOOL_ALLOC(heap, start, bytes);
}
void memcheck_on_free_in(const void* heap, const void* start) noexcept { VALGRIND_MEMPOOL_FREE(heap, start); }

#else  // built without valgrind's header: its users see the pool's memory as one block

bool under_memcheck() noexcept { return false; }
void memcheck_on_allocate(const void*, std::size_t) noexcept {}
void memcheck_on_free(const void*) noexcept {}
void memcheck_poison(const void*, std::size_t) noexcept {}
void memcheck_unpoison(const void*, std::size_t) noexcept {}
void memcheck_define(const void*, std::size_t) noexcept {}
void memcheck_create_heap(const void*) noexcept {}
void memcheck_destroy_heap(const void*) noexcept {}
void memcheck_on_allocate_in(const void*, const void*, std::size_t) noexcept {}
void memcheck_on_free_in(const void*, const void*) noexcept {}

#endif

}  // namespace freehold::base
