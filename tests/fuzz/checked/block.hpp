// SPDX-License-Identifier: MIT
// A block of any family of functions: how it was allocated, and how it is freed as it should be.
#pragma once
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "tests/support/c_api.hpp"
#include "tests/support/pattern.hpp"

namespace freehold::fuzz {

using test::CApi;
using test::opaque;
using test::Random;

enum class Family : std::uint8_t { kMalloc, kNew, kNewArray, kAlignedNew, kAlignedNewArray };

struct Block {
  char* address = nullptr;
  std::size_t bytes = 0;
  std::size_t alignment = 0;  // 0: none was asked for
  std::uint64_t stamp = 0;
  Family family = Family::kMalloc;
};

using FreeSized = void (*)(void*, std::size_t);
using FreeAlignedSized = void (*)(void*, std::size_t, std::size_t);

// The C23 forms, which only some mallocs have; null: this one has not.
inline FreeSized free_sized() {
  static const auto found = reinterpret_cast<FreeSized>(::dlsym(RTLD_DEFAULT, "free_sized"));
  return found;
}
inline FreeAlignedSized free_aligned_sized() {
  static const auto found = reinterpret_cast<FreeAlignedSized>(::dlsym(RTLD_DEFAULT, "free_aligned_sized"));
  return found;
}

inline void* allocate(Family family, std::size_t bytes, std::size_t alignment) {
  const std::align_val_t aligned{alignment};
  switch (family) {
    case Family::kMalloc: return alignment == 0 ? CApi::allocate(bytes) : opaque(&::aligned_alloc)(alignment, bytes);
    case Family::kNew: return opaque(::operator new(bytes, std::nothrow));
    case Family::kNewArray: return opaque(::operator new[](bytes, std::nothrow));
    case Family::kAlignedNew: return opaque(::operator new(bytes, aligned, std::nothrow));
    default: return opaque(::operator new[](bytes, aligned, std::nothrow));
  }
}

// Frees a block of malloc, with what C23 lets it know if `sized`.
inline void free_malloced(const Block& block, void* p, bool sized) {
  if (sized && block.alignment == 0 && free_sized() != nullptr) return free_sized()(p, block.bytes);
  if (sized && block.alignment != 0 && free_aligned_sized() != nullptr)
    return free_aligned_sized()(p, block.alignment, block.bytes);
  CApi::deallocate(p);
}

// Frees a block as its family asks, with its size if `sized`. No conditional expression: of one with two calls of operator
// delete, Clang 19 makes both calls.
inline void free_rightly(const Block& block, bool sized) {
  void* const p = opaque(static_cast<void*>(block.address));
  const std::align_val_t aligned{block.alignment};
  switch (block.family) {
    case Family::kMalloc: return free_malloced(block, p, sized);
    case Family::kNew:
      if (sized) return ::operator delete(p, block.bytes);
      return ::operator delete(p);
    case Family::kNewArray:
      if (sized) return ::operator delete[](p, block.bytes);
      return ::operator delete[](p);
    case Family::kAlignedNew:
      if (sized) return ::operator delete(p, block.bytes, aligned);
      return ::operator delete(p, aligned);
    case Family::kAlignedNewArray:
      if (sized) return ::operator delete[](p, block.bytes, aligned);
      return ::operator delete[](p, aligned);
  }
}

}  // namespace freehold::fuzz
