// SPDX-License-Identifier: MIT
// Lock-free stack of slot numbers without a tag: hazard pointers keep the head from coming back unnoticed (Michael 2004; the
// last line of "Memory management, pools compared"). A thread that pops writes the number that it saw at the top into a
// cell, and looks again: from then on no thread pushes that slot back. So its compare-exchange succeeds only if the link
// that it read is still the slot's (no ABA), though the head is a bare number. A thread that releases a slot which a cell
// names cannot push it; it parks the slot in that cell instead (Herlihy, Luchangco and Moir 2002, "pass the buck"), where
// the cell's next user, or a thread that finds the stack empty, takes it.
//
//   Invariant (at rest): a slot is free  <=>  the list from the head visits it once, or one cell has it parked. A cell that is
//   claimed belongs to one thread, which alone changes the number in it.
//
// Linearisation: acquire at its compare-exchange, of the head or of a cell (null: where shortage.hpp says); release at its
// own. Any thread; lock-free unless kCells threads are within an acquire at once: the next waits. Cost: acquire four
// read-modify-writes, three of them on the thread's own line; release one, and a load for each cell that was ever used.
// Bookkeeping: 4 bytes a slot and a constant.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/pool/tagged_stack.hpp"
#include "freehold/strategies/shortage.hpp"
#include "freehold/strategies/slot_set_pool.hpp"

namespace freehold::pool {

struct HazardOrders {
  // seq_cst, the first four: store buffering. A popper publishes, then looks again; a releaser has popped, then scans. One
  // of them sees the other.
  std::memory_order publish = std::memory_order_seq_cst;
  std::memory_order look = std::memory_order_seq_cst;  // also acquire: pairs with push
  std::memory_order pop = std::memory_order_seq_cst;
  std::memory_order scan = std::memory_order_seq_cst;
  // seq_cst: release, the slot's link and its former owner's last use; and before the look at who searches (shortage.hpp).
  std::memory_order push = std::memory_order_seq_cst;
  std::memory_order park = std::memory_order_seq_cst;
  // acquire: pairs with park.
  std::memory_order unpark = std::memory_order_acquire;
};

struct HazardStackOrders {
  HazardOrders hazards;
  ShortageOrders shortage;
};

template <sync::Atomics A, HazardStackOrders O>
class HazardSet {
 public:
  static constexpr std::uint32_t kNone = (std::uint32_t{1} << 30) - 1;
  static constexpr unsigned kCells = 64;

  // Errors: std::bad_alloc.
  explicit HazardSet(std::size_t slots) : links_(slots) {
    FREEHOLD_ASSERT(slots < kNone);
    for (std::size_t i = 0; i < slots; ++i)
      links_[i].store(i + 1 < slots ? static_cast<std::uint32_t>(i + 1) : kNone,
                      std::memory_order_relaxed);  // not shared yet
    head_.store(0, std::memory_order_relaxed);
  }

  template <class Contention>
  [[nodiscard]] std::uint32_t take(Contention& contention) noexcept {
    if (const std::uint32_t slot = pop(contention); slot != kNone) [[likely]]
      return slot;
    return shortage_.search(kNone, [&] {
      const std::uint32_t slot = pop(contention);
      return slot != kNone ? slot : take_parked();
    });
  }

  template <class Contention>
  void put(std::size_t number, Contention& contention) noexcept {
    const auto slot = static_cast<std::uint32_t>(number);
    if (!park(slot)) {
      std::uint32_t seen = head_.load(std::memory_order_relaxed);  // relaxed: the compare-exchange decides
      for (;;) {
        links_[slot].store(seen, std::memory_order_relaxed);  // relaxed: published by the push
        if (head_.compare_exchange_weak(seen, slot, kH.push, std::memory_order_relaxed)) break;
        contention.retried();
      }
    }
    shortage_.released();
  }

  // At rest.
  [[nodiscard]] bool check_invariants() const noexcept {
    for (const Cell& cell : cells_)
      if ((cell.word.load(std::memory_order_relaxed) & kClaimed) != 0) return false;
    return true;
  }

 private:
  static constexpr HazardOrders kH = O.hazards;
  // A cell has a number, kNone or a slot's, and these: a thread uses it; the slot is free, and lies here.
  static constexpr std::uint32_t kClaimed = std::uint32_t{1} << 31, kParked = std::uint32_t{1} << 30;
  struct alignas(base::kCacheLine) Cell {
    typename A::template atomic<std::uint32_t> word{kNone};
  };

  template <class Contention>
  [[nodiscard]] std::uint32_t pop(Contention& contention) noexcept {
    std::uint32_t got = kNone;
    Cell* const cell = claim(got, contention);
    if (cell == nullptr) return got;
    for (std::uint32_t seen = head_.load(kH.look); seen != kNone;) {
      if (const std::uint32_t former = cell->word.exchange(kClaimed | seen, kH.publish); (former & kParked) != 0) {
        got = former & kNone;
        break;
      }
      const std::uint32_t again = head_.load(kH.look);
      if (again == seen) {
        // relaxed: no thread writes it while the slot is the head, and the look saw what the last push published.
        const std::uint32_t below = links_[seen].load(std::memory_order_relaxed);
        if (head_.compare_exchange_strong(seen, below, success_order<A>(kH.pop, kH.look), kH.look)) {
          got = seen;
          break;
        }
        contention.retried();
      } else {
        seen = again;
      }
    }
    leave(*cell, got);
    return got;
  }

  // A cell for the calling thread. Null: one had a parked slot, which is `got` now.
  template <class Contention>
  [[nodiscard]] Cell* claim(std::uint32_t& got, Contention& contention) noexcept {
    for (unsigned i = A::thread_number() % kCells, tries = 1;; i = (i + 1) % kCells, ++tries) {
      Cell& cell = cells_[i];
      std::uint32_t seen = cell.word.load(std::memory_order_relaxed);  // relaxed: the compare-exchange decides
      // relaxed: a claim says nothing yet.
      if (seen == kNone &&
          cell.word.compare_exchange_strong(seen, kClaimed | kNone, std::memory_order_relaxed, std::memory_order_relaxed)) {
        use(i + 1);
        return &cell;
      }
      if ((seen & kClaimed) == 0 && (got = unpark(cell, seen)) != kNone) return nullptr;
      if (tries % kCells == 0) {
        contention.waited();
        A::yield();
      }
    }
  }
  // Cells below `n` are scanned from now on.
  void use(unsigned n) noexcept {
    std::uint32_t used = used_.load(std::memory_order_relaxed);  // relaxed: it only grows
    while (used < n && !used_.compare_exchange_weak(used, n, kH.publish, std::memory_order_relaxed)) {
    }
  }
  // The thread is done with its cell. A slot that was parked in it stays, or is `got` if there was none.
  void leave(Cell& cell, std::uint32_t& got) noexcept {
    std::uint32_t seen = cell.word.load(std::memory_order_relaxed);
    for (;;) {
      const bool stays = (seen & kParked) != 0 && got != kNone;
      if (!cell.word.compare_exchange_weak(seen, stays ? seen & ~kClaimed : kNone, kH.unpark, std::memory_order_relaxed))
        continue;
      if ((seen & kParked) != 0 && !stays) got = seen & kNone;
      return;
    }
  }

  // Leaves the slot to a thread that is about to pop it. False: no cell names it.
  [[nodiscard]] bool park(std::uint32_t slot) noexcept {
    const std::uint32_t used = used_.load(kH.scan);
    for (std::uint32_t i = 0; i < used; ++i) {
      std::uint32_t seen = cells_[i].word.load(kH.scan);
      if (seen == (kClaimed | slot) &&
          cells_[i].word.compare_exchange_strong(seen, seen | kParked, success_order<A>(kH.park, kH.scan), kH.scan))
        return true;
    }
    return false;
  }
  // The slot that is parked in a cell of this word, or kNone.
  [[nodiscard]] std::uint32_t unpark(Cell& cell, std::uint32_t seen) noexcept {
    while ((seen & kParked) != 0) {
      const std::uint32_t rest = (seen & kClaimed) != 0 ? seen & ~kParked : kNone;  // its thread relies on the number
      if (cell.word.compare_exchange_weak(seen, rest, kH.unpark, std::memory_order_relaxed)) return seen & kNone;
    }
    return kNone;
  }
  [[nodiscard]] std::uint32_t take_parked() noexcept {
    const std::uint32_t used = used_.load(kH.scan);
    for (std::uint32_t i = 0; i < used; ++i)
      if (const std::uint32_t slot = unpark(cells_[i], cells_[i].word.load(kH.scan)); slot != kNone) return slot;
    return kNone;
  }

  // The link of each slot to the one below it.
  StackLinks<A> links_;
  alignas(base::kCacheLine) typename A::template atomic<std::uint32_t> head_{kNone};
  Cell cells_[kCells];
  alignas(base::kCacheLine) typename A::template atomic<std::uint32_t> used_{0};  // one more than the last cell ever claimed
  Shortage<A, O.shortage> shortage_;
};

/// A lock-free stack that hazard pointers protect instead of a tag.
struct HazardStack {
  static constexpr std::string_view kName = "hazard-stack";
  static constexpr bool kFindsLast = true;
  static constexpr double kBookkeepingBytes = 4;
  static constexpr HazardStackOrders kOrders{};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, HazardStackOrders O = kOrders>
  using Pool = SlotSetPool<HazardSet<A, O>, Contention>;
};

}  // namespace freehold::pool
