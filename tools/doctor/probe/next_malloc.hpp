// SPDX-License-Identifier: MIT
// The malloc behind a preloaded library: the program's own. Found by the dynamic linker, which may allocate on the way. Also
// the parts that the entry points of both such libraries, the probe and the pad, share.
#pragma once
#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace freehold::doctor {

// Serves dlsym()'s own allocations before the next malloc is found. Never freed.
class Beginning {
 public:
  [[nodiscard]] void* take(std::size_t bytes) noexcept {
    const std::size_t at = (used_ + 15) & ~std::size_t{15};
    if (bytes > sizeof room_ - at) return nullptr;
    used_ = at + bytes;
    return room_ + at;
  }
  [[nodiscard]] bool has(const void* block) const noexcept { return block >= room_ && block < room_ + sizeof room_; }
  // realloc() of such a block: a copy, by the library's own malloc. The block's length was not noted: as much is copied as
  // may be read. Pre: has(block).
  [[nodiscard]] void* move(const void* block, std::size_t bytes) const noexcept {
    const auto readable = static_cast<std::size_t>(room_ + sizeof room_ - static_cast<const std::byte*>(block));
    void* const moved = ::malloc(bytes);
    if (moved != nullptr) std::memcpy(moved, block, std::min(bytes, readable));
    return moved;
  }

 private:
  alignas(16) std::byte room_[8192]{};
  std::size_t used_ = 0;
};

// The bytes of an array, for calloc() and reallocarray(). False, and errno is set: there are not so many.
[[nodiscard]] inline bool array_bytes(std::size_t n, std::size_t bytes, std::size_t& all) noexcept {
  if (!__builtin_mul_overflow(n, bytes, &all)) return true;
  errno = ENOMEM;
  return false;
}

// Entry points of the malloc that is next in the order of libraries. Before main and before any thread.
struct NextMalloc {
  void* (*malloc)(std::size_t);
  void (*free)(void*);
  void* (*calloc)(std::size_t, std::size_t);
  void* (*realloc)(void*, std::size_t);
  void* (*memalign)(std::size_t, std::size_t);
  void* (*aligned_alloc)(std::size_t, std::size_t);
  int (*posix_memalign)(void**, std::size_t, std::size_t);
  void* (*valloc)(std::size_t);
  void* (*pvalloc)(std::size_t);

  [[nodiscard]] static NextMalloc look_up() noexcept {
    NextMalloc next{};
    find(next.malloc, "malloc");
    find(next.free, "free");
    find(next.calloc, "calloc");
    find(next.realloc, "realloc");
    find(next.memalign, "memalign");
    find(next.aligned_alloc, "aligned_alloc");
    find(next.posix_memalign, "posix_memalign");
    find(next.valloc, "valloc");
    find(next.pvalloc, "pvalloc");
    return next;
  }

 private:
  template <class F>
  static void find(F*& function, const char* name) noexcept {
    function = reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
  }
};

}  // namespace freehold::doctor
