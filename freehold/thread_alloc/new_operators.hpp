// SPDX-License-Identifier: MIT
// The default operator new and delete, every form, on thread_alloc and thread_free. Definitions, not declarations: only
// thread_alloc.h includes this, where a macro asks for it, in one source file of a program or in every one, as the article
// has it. Weak, since the standard forbids inline ones: the linker takes the first and drops the others.
// One rule keeps the forms consistent: every block comes from thread_alloc or thread_alloc_aligned, and thread_free takes
// both, so no delete needs the size or the alignment that it gets. Works with C++11 and without exceptions; where they
// are off, exhausted memory ends in abort() instead of std::bad_alloc.
// Source: [new.delete] of the C++ standard.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <new>

#include "freehold/thread_alloc.h"

namespace freehold_new_operators {

constexpr std::size_t kDefaultAlignment = 16;  // bytes: what thread_alloc gives unasked

// Asks the new handler for help until there is memory, or no handler: then null. A handler may throw.
inline void* obtain(std::size_t bytes, std::size_t alignment) {
  for (;;) {
    void* const block = alignment <= kDefaultAlignment ? thread_alloc(bytes) : thread_alloc_aligned(alignment, bytes);
    if (block != nullptr) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) return nullptr;
    handler();
  }
}

inline void* obtain_or_throw(std::size_t bytes, std::size_t alignment) {
  void* const block = obtain(bytes, alignment);
  if (block != nullptr) return block;
#ifdef __cpp_exceptions
  throw std::bad_alloc();
#else
  std::abort();
#endif
}

inline void* obtain_or_null(std::size_t bytes, std::size_t alignment) noexcept {
#ifdef __cpp_exceptions
  try {
    return obtain(bytes, alignment);
  } catch (...) {  // the handler's
    return nullptr;
  }
#else
  return obtain(bytes, alignment);
#endif
}

}  // namespace freehold_new_operators

[[gnu::weak]] void* operator new(std::size_t n) {
  return freehold_new_operators::obtain_or_throw(n, freehold_new_operators::kDefaultAlignment);
}
[[gnu::weak]] void* operator new[](std::size_t n) {
  return freehold_new_operators::obtain_or_throw(n, freehold_new_operators::kDefaultAlignment);
}
[[gnu::weak]] void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  return freehold_new_operators::obtain_or_null(n, freehold_new_operators::kDefaultAlignment);
}
[[gnu::weak]] void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
  return freehold_new_operators::obtain_or_null(n, freehold_new_operators::kDefaultAlignment);
}

[[gnu::weak]] void operator delete(void* p) noexcept { thread_free(p); }
[[gnu::weak]] void operator delete[](void* p) noexcept { thread_free(p); }
[[gnu::weak]] void operator delete(void* p, const std::nothrow_t&) noexcept { thread_free(p); }
[[gnu::weak]] void operator delete[](void* p, const std::nothrow_t&) noexcept { thread_free(p); }
#ifdef __cpp_sized_deallocation
[[gnu::weak]] void operator delete(void* p, std::size_t) noexcept { thread_free(p); }
[[gnu::weak]] void operator delete[](void* p, std::size_t) noexcept { thread_free(p); }
#endif

#ifdef __cpp_aligned_new
[[gnu::weak]] void* operator new(std::size_t n, std::align_val_t a) {
  return freehold_new_operators::obtain_or_throw(n, static_cast<std::size_t>(a));
}
[[gnu::weak]] void* operator new[](std::size_t n, std::align_val_t a) {
  return freehold_new_operators::obtain_or_throw(n, static_cast<std::size_t>(a));
}
[[gnu::weak]] void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return freehold_new_operators::obtain_or_null(n, static_cast<std::size_t>(a));
}
[[gnu::weak]] void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return freehold_new_operators::obtain_or_null(n, static_cast<std::size_t>(a));
}

[[gnu::weak]] void operator delete(void* p, std::align_val_t) noexcept { thread_free(p); }
[[gnu::weak]] void operator delete[](void* p, std::align_val_t) noexcept { thread_free(p); }
[[gnu::weak]] void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { thread_free(p); }
[[gnu::weak]] void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept { thread_free(p); }
#ifdef __cpp_sized_deallocation
[[gnu::weak]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { thread_free(p); }
[[gnu::weak]] void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { thread_free(p); }
#endif
#endif
