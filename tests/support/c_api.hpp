// SPDX-License-Identifier: MIT
// The malloc family as one type, through pointers that the compiler cannot see through: it knows malloc and free by name
// and removes, merges or assumes what a test of them is about.
#pragma once
#include <malloc.h>

#include <cstddef>
#include <cstdlib>

// Freehold has them wherever it runs; musl does not.
#ifndef __GLIBC__
extern "C" {
[[gnu::weak]] int malloc_trim(std::size_t);
[[gnu::weak]] void* pvalloc(std::size_t);
}
#endif

namespace freehold::test {

template <class T>
T opaque(T value) {
  asm volatile("" : "+r"(value) : : "memory");
  return value;
}

struct CApi {
  static constexpr const char* kName = "malloc";
  static void* allocate(std::size_t bytes) { return opaque(&std::malloc)(bytes); }
  static void* allocate_zeroed(std::size_t bytes) { return opaque(&std::calloc)(1, bytes); }
  static void* allocate_aligned(std::size_t alignment, std::size_t bytes) { return opaque(&memalign)(alignment, bytes); }
  static void* reallocate(void* block, std::size_t bytes) { return opaque(&std::realloc)(block, bytes); }
  static void deallocate(void* block) { opaque (&std::free)(block); }
  static std::size_t usable_size(void* block) { return opaque(&malloc_usable_size)(block); }
  static void trim() { opaque (&malloc_trim)(0); }
};

}  // namespace freehold::test
