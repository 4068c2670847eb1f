#include "freehold/base/poison.hpp"

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define FREEHOLD_VALGRIND 1
#endif

namespace freehold::base {

#if defined(FREEHOLD_VALGRIND)

bool under_memcheck() noexcept { return RUNNING_ON_VALGRIND != 0; }
void memcheck_block_begins(const void* start, std::size_t bytes) noexcept { VALGRIND_MALLOCLIKE_BLOCK(start, bytes, 0, 0); }
void memcheck_block_ends(const void* start) noexcept { VALGRIND_FREELIKE_BLOCK(start, 0); }
void memcheck_conceal(const void* start, std::size_t bytes) noexcept {
  static_cast<void>(VALGRIND_MAKE_MEM_NOACCESS(start, bytes));
}
void memcheck_forget(const void* start, std::size_t bytes) noexcept {
  static_cast<void>(VALGRIND_MAKE_MEM_UNDEFINED(start, bytes));
}
void memcheck_define(const void* start, std::size_t bytes) noexcept {
  static_cast<void>(VALGRIND_MAKE_MEM_DEFINED(start, bytes));
}
void memcheck_heap_begins(const void* heap) noexcept { VALGRIND_CREATE_MEMPOOL(heap, 0, 0); }
void memcheck_heap_ends(const void* heap) noexcept { VALGRIND_DESTROY_MEMPOOL(heap); }
void memcheck_block_begins_in(const void* heap, const void* start, std::size_t bytes) noexcept {
  VALGRIND_MEMPOOL_ALLOC(heap, start, bytes);
}
void memcheck_block_ends_in(const void* heap, const void* start) noexcept { VALGRIND_MEMPOOL_FREE(heap, start); }

#else  // built without valgrind's header: its users see the pool's memory as one block

bool under_memcheck() noexcept { return false; }
void memcheck_block_begins(const void*, std::size_t) noexcept {}
void memcheck_block_ends(const void*) noexcept {}
void memcheck_conceal(const void*, std::size_t) noexcept {}
void memcheck_forget(const void*, std::size_t) noexcept {}
void memcheck_define(const void*, std::size_t) noexcept {}
void memcheck_heap_begins(const void*) noexcept {}
void memcheck_heap_ends(const void*) noexcept {}
void memcheck_block_begins_in(const void*, const void*, std::size_t) noexcept {}
void memcheck_block_ends_in(const void*, const void*) noexcept {}

#endif

}  // namespace freehold::base
