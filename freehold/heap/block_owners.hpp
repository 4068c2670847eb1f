// SPDX-License-Identifier: MIT
// Checked mode: which private heap has which block. The book lies apart from the blocks, so that a program which writes
// where it should not does no harm to it.
//
//   Invariant: a block is in the book iff a heap of this shared object has given it to the program, once; it is in the list
//   of that heap, and of no other one.
//
// One hash table with chains for all heaps, under one lock, which is the last of a heap's locks. Any thread. Memory: 48
// bytes for each block that was live at once, which are kept for the next ones.
#pragma once
#include <atomic>
#include <cstddef>

#include "freehold/alloc/scope/scope.hpp"

namespace freehold::heap {

struct OwnedBlock;

// The heap of blocks whose own one has ended: engine_checks().
[[gnu::visibility("hidden")]] extern alloc::ScopedHeap g_orphan_heap;

// The blocks of one heap. Externally serialised, as the heap is; two heaps need not be.
class OwnedBlocks {
 public:
  constexpr explicit OwnedBlocks(void* heap) noexcept : heap_(heap) {}
  OwnedBlocks(const OwnedBlocks&) = delete;
  OwnedBlocks& operator=(const OwnedBlocks&) = delete;

  // False: no memory. Pre: the block has no owner yet.
  [[nodiscard]] bool add(const void* block, std::size_t bytes) noexcept;
  // Returns its bytes; 0: it is not this heap's.
  std::size_t remove(const void* block) noexcept;
  [[nodiscard]] bool has(const void* block) const noexcept;
  // All of them are `to`'s from now on.
  void move_to(OwnedBlocks& to) noexcept;
  // Removes one of them, whichever; null: none is left.
  [[nodiscard]] void* remove_any() noexcept;

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  // Returns whether any block was ever added. Relaxed: a block that the caller has was added before the caller got it.
  [[nodiscard]] static bool any() noexcept { return any_.load(std::memory_order_relaxed); }
  // The heap of a block; null: none has it.
  [[nodiscard]] static void* heap_of(const void* block) noexcept;

  // Around fork, for the book of all heaps.
  static void before_fork() noexcept;
  static void after_fork() noexcept;

 private:
  void unlink(OwnedBlock* place) noexcept;

  static std::atomic<bool> any_;

  void* heap_;
  OwnedBlock* first_ = nullptr;
  std::size_t count_ = 0, bytes_ = 0;
};

}  // namespace freehold::heap
