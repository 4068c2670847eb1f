// SPDX-License-Identifier: MIT
// The pool for one thread: a stack of the addresses of free slots, in which slots that came back one after the other at
// equal distances are one entry, a run.
//
//   freehold::SingleThreadPool pool({.slots = 10'000, .slot_bytes = sizeof(Order)});
//   void* slot = pool.acquire();                    // null: every slot is in use
//   pool.release(slot);
//
// acquire pops, release pushes; the slots themselves are not touched. So the next address never waits for the memory of the
// slot before it, as it does in a list whose links lie in the free slots: boost::pool takes twice as long once slots come
// back in random order. Addresses that are known ahead can be prefetched, and are. The newest run lies beside the stack: a
// million slots that are released in their order are no entry at all, where a stack of their addresses is 8 MB written and
// read. Slots that were never used become a run a few at a time, so that a pool holds what it uses.
//
// The slot that was released last stands beside both. A thread that acquires and releases in turn leaves them alone, and no
// load waits for the store before it.
//
// On an Intel guest long lives take 0.5 to 0.9 times as long as with the best of the other pools, a pair 0.7 to 2.3 times
// (docs/pools.md).
//
//   Invariant: the free slots among those that were cut are newest_ (unless 0), the run from begin_ by distance_ to end_,
//   and those on the stack. An entry of it is an address, or kRun above a run's end, distance and beginning. Slots from
//   cut_ on are in none of these.
//
// Under memcheck, which has to be told of each slot, run and stack stay empty for the fast paths, and a stack of addresses
// grows in the slow ones. The newest slot is not told of, so that its use after release is not seen there.
// AddressSanitizer's builds and checked ones see all.
//
// Threads: one at a time (externally locked). acquire never throws; null: every slot is in use.
// Cost: 4 to 15 instructions each, no atomics, no shared lines. Bookkeeping: at most 8 bytes a slot that was in use. Source:
// the unlocked pools of article 2, test 3, and what is left of BestPool when one thread uses it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

#include "freehold/base/bits.hpp"
#include "freehold/pool/concept.hpp"
#include "freehold/pool/memory.hpp"
#include "freehold/pool/slots.hpp"

namespace freehold::pool {

/// A pool of slots for one thread at a time.
/// Threads: externally locked. Cost: 4 to 15 instructions an operation.
class SingleThreadPool {
 public:
  /// A pool of fixed capacity.
  /// @param shape  number, size and alignment of the slots
  /// Errors: std::bad_alloc.
  explicit SingleThreadPool(const PoolShape& shape)
      : slots_(shape),
        slot_bytes_(slots_.count() > 1 ? address_of(1) - address_of(0) : 1),
        stack_(kEntriesAhead + 1 + shape.slots),
        top_(stack_.data() + kEntriesAhead),
        hidden_top_(kMarksAlways || slots_.watched() ? top_ : nullptr) {}
  SingleThreadPool(const SingleThreadPool&) = delete;
  SingleThreadPool& operator=(const SingleThreadPool&) = delete;
  /// Slots in use end with it.
  ~SingleThreadPool() {
    if (hidden_top_ != nullptr && newest_ != 0) push_slow(newest_);  // no look at it has been taken yet
  }

  /// A free slot, its contents arbitrary; null: every slot is in use.
  [[nodiscard, gnu::always_inline]] inline void* acquire() noexcept {
    const Address newest = newest_;
    if (newest != 0) {
      newest_ = 0;
      return reinterpret_cast<void*>(newest);
    }
    if (begin_ != end_) {
      __builtin_prefetch(reinterpret_cast<void*>(end_ - kSlotsAhead * distance_), 1);
      return reinterpret_cast<void*>(end_ -= distance_);
    }
    const Address entry = *top_;
    if (entry <= kRun) [[unlikely]]
      return acquire_slow();
    __builtin_prefetch(reinterpret_cast<void*>(top_[-kEntriesAhead]), 1);
    --top_;
    return reinterpret_cast<void*>(entry);
  }
  /// Takes a slot back.
  /// @param slot  what acquire() of this pool returned
  [[gnu::always_inline]] inline void release(void* slot) noexcept {
    if constexpr (kMarksAlways) return release_watched(slot);
    const Address before = std::exchange(newest_, reinterpret_cast<Address>(slot));
    if (before == 0) return;
    if (before == end_)
      end_ += distance_;
    else
      push(before);
  }

  /// The most slots that there can be in use.
  [[nodiscard]] std::size_t capacity() const noexcept { return slots_.count(); }
  /// The most slots that were in use at once, up to a batch more.
  [[nodiscard]] std::size_t peak_slots() const noexcept { return cut_; }
  /// The slots that are in use; exact. Cost: O(runs of free slots).
  [[nodiscard]] std::size_t in_use() const noexcept {
    std::size_t free = (newest_ != 0 ? 1 : 0) + slots_in(begin_, end_, distance_);
    for (const Address* at = hidden_top_ != nullptr ? hidden_top_ : top_; *at != 0; --at) {
      free += *at != kRun ? 1 : slots_in(at[-3], at[-1], at[-2]);
      if (*at == kRun) at -= 3;
    }
    return cut_ - free;
  }

 private:
  // The address of a slot. Distances between slots may be negative and wrap around.
  using Address = std::uintptr_t;

  static constexpr std::size_t kBatch = 64;
  static constexpr Address kRun = 1;  // as an entry of the stack; the first ones are 0, and stay
  static constexpr std::size_t kRunWords = 4;
  // So far ahead slots are prefetched. A prefetch of what is no memory does nothing.
  static constexpr Address kSlotsAhead = 32;
  static constexpr std::ptrdiff_t kEntriesAhead = 16;

  // Every build that marks slots.
  static constexpr bool kMarksAlways = kChecked;

  [[nodiscard]] Address address_of(std::size_t slot) const noexcept {
    return reinterpret_cast<Address>(slots_.address(slot));
  }
  // How many a run holds.
  [[nodiscard]] static std::size_t slots_in(Address begin, Address end, Address distance) noexcept {
    return static_cast<std::size_t>(static_cast<std::intptr_t>(end - begin) / static_cast<std::intptr_t>(distance));
  }

  // A slot that does not continue the run. If the next one comes at the same distance, these are a run.
  [[gnu::always_inline]] inline void push(Address slot) noexcept {
    if (begin_ != end_ || hidden_top_ != nullptr) [[unlikely]]
      return push_slow(slot);
    const Address distance = slot - (end_ - distance_);
    distance_ = distance != 0 ? distance : slot_bytes_;
    begin_ = end_ = slot + distance_;
    *++top_ = slot;
  }
  // The run goes onto the stack before it.
  [[gnu::noinline]] void push_slow(Address slot) noexcept {
    if (hidden_top_ != nullptr) return release_watched(reinterpret_cast<void*>(slot));
    if (slots_in(begin_, end_, distance_) <= kRunWords) {
      for (; begin_ != end_; begin_ += distance_) *++top_ = begin_;
    } else {
      *++top_ = begin_;
      *++top_ = distance_;
      *++top_ = end_;
      *++top_ = kRun;
      begin_ = end_;
    }
    push(slot);
  }

  [[nodiscard, gnu::noinline]] void* acquire_slow() noexcept {
    if (kMarksAlways || hidden_top_ != nullptr) return acquire_watched();
    if (*top_ == kRun) {
      end_ = top_[-1];
      distance_ = top_[-2];
      begin_ = top_[-3];
      top_ -= 4;
    } else {
      const std::size_t n = cut();
      if (n == 0) return nullptr;
      begin_ = address_of(cut_ - 1);
      distance_ = -slot_bytes_;  // so that pops go upwards through memory
      end_ = begin_ + n * distance_;
    }
    return reinterpret_cast<void*>(end_ -= distance_);
  }
  // Returns how many of the slots that were never used may be from now on.
  [[nodiscard]] std::size_t cut() noexcept {
    const std::size_t left = slots_.count() - cut_;
    const std::size_t n = left < kBatch ? left : kBatch;
    cut_ += n;
    return n;
  }
  [[nodiscard]] void* acquire_watched() noexcept {
    if (*hidden_top_ == 0) {
      const std::size_t n = cut();
      for (std::size_t i = 1; i <= n; ++i) *++hidden_top_ = address_of(cut_ - i);  // so that pops go upwards through memory
      if (n == 0) return nullptr;
    }
    return slots_.hand_out_at(reinterpret_cast<void*>(*hidden_top_--));
  }
  [[gnu::noinline]] void release_watched(void* slot) noexcept {
    if (slots_.take_back_at(slot)) *++hidden_top_ = reinterpret_cast<Address>(slot);
  }

  Slots slots_;
  Address slot_bytes_;  // from one slot to the next
  ZeroedArray<Address> stack_;
  Address newest_ = 0;    // the slot that was released last; 0: it was acquired again
  Address begin_ = 0;     // the run's first slot
  Address end_ = 0;       // the slot that would continue the run; begin_: the run is empty
  Address distance_ = 1;  // from each slot of the run to the next; never 0
  Address* top_;          // the newest entry
  Address* hidden_top_;   // the same where slots are marked; null: they are not
  std::size_t cut_ = 0;   // slots that were in use, or in the run that was cut last
};
static_assert(SlotPool<SingleThreadPool>);

}  // namespace freehold::pool

namespace freehold {
using pool::SingleThreadPool;
}  // namespace freehold
