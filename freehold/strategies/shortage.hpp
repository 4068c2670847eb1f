// SPDX-License-Identifier: MIT
// Tells "there is no free slot" from "there was one, but not where I was looking". A sweep over many places sees each empty
// at some moment, not all at one, since a slot may be freed behind the sweep while another is taken before it. So a thread
// that found nothing registers as a searcher and sweeps again, until no release was counted during a sweep; a release is
// counted while a thread searches.
//
//   Invariant: a release that ends during a sweep changed releases_ in between.
//   (Its slot became visible before it read searchers_, the searcher registered before it read the slots: store buffering,
//   hence seq_cst for these four, of which the slots' two belong to the pool. A release that has not ended yet counts as
//   one that comes later. A thread that then takes another slot does so by a release: a sweep that sees it
//   gone sees what was counted.)
//
// Any thread; lock-free: a sweep is repeated only because another thread released. Cost: released() one load of a line that
// is written only when the pool runs dry; search() two atomics and at least one sweep.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/pool/concept.hpp"
#include "freehold/pool/tagged_stack.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::pool {

struct ShortageOrders {
  // seq_cst: after the slot became visible; pairs with enter.
  std::memory_order ask = std::memory_order_seq_cst;
  // seq_cst: before the sweep's loads; pairs with ask.
  std::memory_order enter = std::memory_order_seq_cst;
  // relaxed, both: what a sweep must not miss was counted before its thread took another slot, and that take is a release.
  std::memory_order tell = std::memory_order_relaxed;
  std::memory_order compare = std::memory_order_relaxed;
};

// Several stacks need these, if a look at all must not miss a slot (see the head): seq_cst looks and pushes, and a pop that
// releases, so that a thread that sees a stack empty sees what its popper counted before. A look again is newer than the
// look.
inline constexpr TaggedStackOrders kStackAmongOthers{std::memory_order_seq_cst, std::memory_order_acquire,
                                                     std::memory_order_release, std::memory_order_seq_cst};

template <sync::Atomics A, ShortageOrders O = ShortageOrders{}>
class Shortage {
 public:
  // Call after a slot became visible as free, by a seq_cst write.
  void released() noexcept {
    if (searchers_.load(O.ask) != 0) [[unlikely]]
      releases_.fetch_add(1, O.tell);
  }

  // Returns the result of `sweep()`, which looks everywhere once by seq_cst reads; `none` only if there was nothing.
  template <class T, class Sweep>
  [[nodiscard]] T search(T none, Sweep&& sweep) noexcept {
    searchers_.fetch_add(1, O.enter);
    // relaxed: an older value only repeats the sweep.
    std::uint64_t before = releases_.load(std::memory_order_relaxed);
    T found = sweep();
    while (found == none) {
      const std::uint64_t after = releases_.load(O.compare);
      if (after == before) break;
      before = after;
      found = sweep();
    }
    searchers_.fetch_sub(1, std::memory_order_relaxed);  // relaxed: a thread that still sees us only counts in vain
    return found;
  }

 private:
  // Written when the pool runs dry.
  alignas(base::kCacheLine) typename A::template atomic<std::uint32_t> searchers_{0};
  typename A::template atomic<std::uint64_t> releases_{0};
};

}  // namespace freehold::pool
