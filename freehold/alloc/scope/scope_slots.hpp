// SPDX-License-Identifier: MIT
// The free slots of its scope's heap that a thread keeps, so that its malloc pops them: detour.hpp has them. Only their
// thread changes them.
//
//   void* block = slots.refill(heap, c, bytes);    // null: the limit or memory
//   slots.empty(give);                             // give(first, n) for the slots of each class
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "freehold/alloc/scope/scope.hpp"
#include "freehold/base/bits.hpp"

namespace freehold::alloc {

// An array for each of malloc's smaller classes.
struct ScopeSlots {
  static constexpr std::size_t kClasses = 33, kSlots = 31;
  void*** tops = nullptr;                  // of each array, one past the newest slot
  std::uint64_t filled = 0;                // classes whose arrays may not be empty, a bit each
  void* slots[kClasses][1 + kSlots] = {};  // behind a null, where pop stops
  std::uint8_t wanted[kClasses] = {};      // slots that the next refill asks for

  [[nodiscard]] void** first(std::size_t c) noexcept { return &slots[c][1]; }

  // Pops a slot of class c, which has slots of `bytes`; the heap fills an empty array. Null: the limit or memory.
  [[nodiscard]] void* refill(ScopedHeap& heap, std::size_t c, std::size_t bytes) noexcept {
    void** const first = this->first(c);
    void**& top = tops[c];
    if (top == first) {
      wanted[c] = static_cast<std::uint8_t>(std::clamp<std::size_t>(std::size_t{2} * wanted[c], 1, kSlots));
      top = first + heap.calls->take(heap, bytes, first, wanted[c]);
      filled |= base::bit(c);
    }
    return top == first ? nullptr : *--top;
  }
  template <class Give>
  void empty(const Give& give) noexcept {
    for (std::uint64_t left = std::exchange(filled, 0); left != 0; left &= left - 1) {
      const unsigned c = base::lowest_bit(left);
      const auto n = static_cast<std::size_t>(std::exchange(tops[c], first(c)) - first(c));
      if (2 * n >= wanted[c]) wanted[c] /= 4;  // the scope was short
      give(first(c), n);
    }
  }
};

// Gives n freed blocks that lie in slabs to their heaps. with_heap_of(block, f) calls f(heap) for the heap of a block, which
// does not end before f returns; report(block) is called where no heap has it.
template <class WithHeapOf, class Report>
void give_to_heaps(void** blocks, std::size_t n, const WithHeapOf& with_heap_of, const Report& report) noexcept {
  while (n != 0) {
    std::size_t left = 0;
    if (with_heap_of(blocks[0], [&](ScopedHeap& heap) { left = heap.calls->give(heap, blocks, n); }) && left < n) {
      n = left;
    } else {
      report(*blocks++);
      --n;
    }
  }
}

}  // namespace freehold::alloc
