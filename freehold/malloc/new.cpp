// Every form of operator new and delete. The library must not need libstdc++ (a preloaded C program has none), so the new
// handler and the throw are reached through weak references: a program that can catch bad_alloc has brought them along.
#include <stddef.h>
#include <stdlib.h>

#include <new>

#include "freehold/alloc/engine.hpp"
#include "freehold/alloc/fast_path.hpp"
#include "freehold/malloc/export.hpp"

extern "C" {
// std::get_new_handler() and std::__throw_bad_alloc() of libstdc++.
[[gnu::weak]] std::new_handler _ZSt15get_new_handlerv() noexcept;
[[gnu::weak]] void _ZSt17__throw_bad_allocv();
}

namespace {

namespace alloc = freehold::alloc;

// [new.delete.single]: call the new handler until it gives up, then throw (or return null for nothrow).
template <class Try>
[[gnu::noinline, gnu::cold]] void* new_slow(Try&& try_again, bool nothrow) {
  for (;;) {
    const std::new_handler handler = _ZSt15get_new_handlerv != nullptr ? _ZSt15get_new_handlerv() : nullptr;
    if (handler == nullptr) break;
    handler();
    if (void* block = try_again(); block != nullptr) return block;
  }
  if (nothrow) return nullptr;
  if (_ZSt17__throw_bad_allocv != nullptr) _ZSt17__throw_bad_allocv();
  abort();
}

[[gnu::always_inline]] inline void* new_any(size_t bytes, bool nothrow) {
  if (void* block = alloc::allocate_inline(bytes); block != nullptr) [[likely]]
    return block;
  return new_slow([=] { return alloc::allocate(bytes); }, nothrow);
}
void* new_aligned(size_t bytes, std::align_val_t alignment, bool nothrow) {
  const auto n = static_cast<size_t>(alignment);
  if (void* block = alloc::allocate_aligned(n, bytes); block != nullptr) [[likely]]
    return block;
  return new_slow([=] { return alloc::allocate_aligned(n, bytes); }, nothrow);
}

}  // namespace

FREEHOLD_EXPORT void* operator new(size_t n) { return new_any(n, false); }
FREEHOLD_EXPORT void* operator new[](size_t n) { return new_any(n, false); }
FREEHOLD_EXPORT void* operator new(size_t n, const std::nothrow_t&) noexcept { return new_any(n, true); }
FREEHOLD_EXPORT void* operator new[](size_t n, const std::nothrow_t&) noexcept { return new_any(n, true); }
FREEHOLD_EXPORT void* operator new(size_t n, std::align_val_t a) { return new_aligned(n, a, false); }
FREEHOLD_EXPORT void* operator new[](size_t n, std::align_val_t a) { return new_aligned(n, a, false); }
FREEHOLD_EXPORT void* operator new(size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return new_aligned(n, a, true);
}
FREEHOLD_EXPORT void* operator new[](size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return new_aligned(n, a, true);
}

FREEHOLD_EXPORT void operator delete(void* p) noexcept { alloc::deallocate_inline(p); }
FREEHOLD_EXPORT void operator delete[](void* p) noexcept { alloc::deallocate_inline(p); }
FREEHOLD_EXPORT void operator delete(void* p, size_t) noexcept { alloc::deallocate_inline(p); }
FREEHOLD_EXPORT void operator delete[](void* p, size_t) noexcept { alloc::deallocate_inline(p); }
FREEHOLD_EXPORT void operator delete(void* p, std::align_val_t) noexcept { alloc::deallocate_inline(p); }
FREEHOLD_EXPORT void operator delete[](void* p, std::align_val_t) noexcept { alloc::deallocate_inline(p); }
FREEHOLD_EXPORT void operator delete(void* p, size_t, std::align_val_t) noexcept { alloc::deallocate_inline(p); }
FREEHOLD_EXPORT void operator delete[](void* p, size_t, std::align_val_t) noexcept { alloc::deallocate_inline(p); }
FREEHOLD_EXPORT void operator delete(void* p, const std::nothrow_t&) noexcept { alloc::deallocate_inline(p); }
FREEHOLD_EXPORT void operator delete[](void* p, const std::nothrow_t&) noexcept { alloc::deallocate_inline(p); }
FREEHOLD_EXPORT void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept {
  alloc::deallocate_inline(p);
}
FREEHOLD_EXPORT void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept {
  alloc::deallocate_inline(p);
}
