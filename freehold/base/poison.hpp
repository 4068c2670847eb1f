// SPDX-License-Identifier: MIT
// Tells AddressSanitizer and memcheck which memory of a pool or heap is handed out, so that they find use after release
// and overruns there as they do in malloc's memory. A pool has a Poison, a heap a HeapPoison:
//   poison() all memory when it is made, on_allocate() a block when it is handed out, on_free() when it comes back,
//   unpoison() the memory before it is freed.
// AddressSanitizer is known when the program is compiled; memcheck when it runs: code with a fast path asks watched() once
// and turns that path off under memcheck, so the fast path costs nothing without it.
// Poisoned memory is not necessarily free: programs poison parts of their own blocks, too. So pools and heaps keep a bit for
// each slot beside it.
//
// Any thread. Without either tool: nothing (compiled out), or one call in a slow path.
#pragma once
#include <cstddef>

#include "freehold/base/asan.hpp"

namespace freehold::base {

// Returns whether the program runs under valgrind (any of its tools). Cost: six instructions.
[[nodiscard]] bool under_memcheck() noexcept;
// A block was allocated, was freed; memory that may not be touched; memory as any other. Nothing outside of valgrind.
void memcheck_on_allocate(const void* start, std::size_t bytes) noexcept;
void memcheck_on_free(const void* start) noexcept;
void memcheck_poison(const void* start, std::size_t bytes) noexcept;
void memcheck_unpoison(const void* start, std::size_t bytes) noexcept;
void memcheck_define(const void* start, std::size_t bytes) noexcept;
// The blocks of a heap, which its address names: memcheck_destroy_heap ends all of them.
void memcheck_create_heap(const void* heap) noexcept;
void memcheck_destroy_heap(const void* heap) noexcept;
void memcheck_on_allocate_in(const void* heap, const void* start, std::size_t bytes) noexcept;
void memcheck_on_free_in(const void* heap, const void* start) noexcept;

// The marking of one pool. It remembers whether the program runs under memcheck.
template <bool kAsan>
class PoisonOf {
 public:
  // `looked_at`: the pool itself looks at each slot (checked mode), so that its fast paths must be off as under memcheck.
  explicit PoisonOf(bool looked_at = false) noexcept : memcheck_(looked_at || under_memcheck()) {}

  // Returns whether every allocation and free must be marked: then fast paths stay off.
  [[nodiscard]] bool watched() const noexcept { return kAsan || memcheck_; }

  [[nodiscard]] bool memcheck() const noexcept { return memcheck_; }

  void poison(const void* start, std::size_t bytes) const noexcept {
    asan_poison<kAsan>(start, bytes);
    if (memcheck_) memcheck_poison(start, bytes);
  }
  void on_allocate(const void* block, std::size_t bytes) const noexcept {
    asan_unpoison<kAsan>(block, bytes);
    if (memcheck_) memcheck_on_allocate(block, bytes);
  }
  void on_free(const void* block, std::size_t bytes) const noexcept {
    asan_poison<kAsan>(block, bytes);
    if (memcheck_) memcheck_on_free(block);
  }
  void unpoison(const void* start, std::size_t bytes) const noexcept {
    asan_unpoison<kAsan>(start, bytes);
    if (memcheck_) memcheck_unpoison(start, bytes);
  }

 private:
  bool memcheck_;
};
using Poison = PoisonOf<kAddressSanitizer>;

// The marking of one heap: its free blocks hold links, and all its blocks can be freed at once.
template <bool kAsan>
class HeapPoisonOf {
 public:
  // `looked_at`: the heap itself looks at each block (checked mode), so that its fast paths must be off as under memcheck,
  // whose marks cost nothing where it is not there.
  explicit HeapPoisonOf(bool looked_at) noexcept : memcheck_(looked_at || under_memcheck()) {
    if (memcheck_) memcheck_create_heap(this);
  }
  HeapPoisonOf(const HeapPoisonOf&) = delete;
  HeapPoisonOf& operator=(const HeapPoisonOf&) = delete;
  ~HeapPoisonOf() {
    if (memcheck_) memcheck_destroy_heap(this);
  }

  [[nodiscard]] bool watched() const noexcept { return kAsan || memcheck_; }

  void poison(const void* start, std::size_t bytes) const noexcept {
    asan_poison<kAsan>(start, bytes);
    if (memcheck_) memcheck_poison(start, bytes);
  }
  void on_allocate(const void* block, std::size_t bytes) const noexcept {
    asan_unpoison<kAsan>(block, bytes);
    if (memcheck_) memcheck_on_allocate_in(this, block, bytes);
  }
  void on_free(const void* block, std::size_t bytes) const noexcept {
    asan_poison<kAsan>(block, bytes);
    if (memcheck_) memcheck_on_free_in(this, block);
  }
  // For the moment in which the heap itself reads or writes the link in a free block.
  void unpoison_link(const void* link, std::size_t bytes) const noexcept {
    asan_unpoison<kAsan>(link, bytes);
    if (memcheck_) memcheck_define(link, bytes);
  }
  void poison_link(const void* link, std::size_t bytes) const noexcept { poison(link, bytes); }
  // All blocks are freed now.
  void on_free_all() const noexcept {
    if (!memcheck_) return;
    memcheck_destroy_heap(this);
    memcheck_create_heap(this);
  }
  void unpoison(const void* start, std::size_t bytes) const noexcept {
    asan_unpoison<kAsan>(start, bytes);
    if (memcheck_) memcheck_unpoison(start, bytes);
  }

 private:
  bool memcheck_;
};
using HeapPoison = HeapPoisonOf<kAddressSanitizer>;

}  // namespace freehold::base
