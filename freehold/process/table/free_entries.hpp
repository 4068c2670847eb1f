// SPDX-License-Identifier: MIT
// The free entries of a task table, and the clients that wait for one.
//
//   free.find(from_first, [&](std::uint32_t entry) { return take_it_by_its_word(entry); });
//   free.wait(nanoseconds);                 // if it found none
//   free.add(entry);                        // the entry's word says so already
//   free.notify_one();
//
// Clients take entries round and round the table.
//
// Invariant: while all processes live, no client sleeps beside a bit of a free entry: a client sets the odd flag of space_
// and then looks at the bits, and a thread that sets a bit then reads the flag. One of the two sees the other.
//
// Threads: any thread of any process.
#pragma once
#include <cstdint>

#include "freehold/process/table/table_bits.hpp"

namespace freehold::process {

template <sync::SharedAtomics A, class Orders>
class FreeEntries {
  using Layout = TaskTableLayout<A>;
  using Word = typename A::template atomic<std::uint32_t>;

 public:
  explicit FreeEntries(const Layout& layout) noexcept
      : entries_(layout.shape.entries),
        bits_(layout, layout.free, entries_),
        cursor_(layout.template word<std::uint32_t>(Layout::SharedWord::kFreeCursor)),
        space_(layout.template word<std::uint32_t>(Layout::SharedWord::kSpace)) {}

  // The first result of `take(entry)` that is one, of the free entries from the cursor on, or from the first on. Clears the
  // entry's bit before.
  template <class Take>
  [[nodiscard]] auto find(bool from_first, Take take) noexcept -> decltype(take(0)) {
    // relaxed, the cursor: where to begin; any entry is right.
    const std::uint32_t begin = from_first ? 0 : cursor_->load(std::memory_order_relaxed) % entries_;
    decltype(take(0)) taken;
    bits_.visit(begin, 0, [&](std::uint32_t i) {
      if (remove(i)) taken = take(i);
      if (taken && !from_first) cursor_->store(i + 1, std::memory_order_relaxed);
      return taken.has_value();
    });
    return taken;
  }
  // Returns whether this call has removed it.
  [[nodiscard]] bool remove(std::uint32_t i) noexcept { return bits_.clear(i, Orders::kClearBit); }
  void add(std::uint32_t i) noexcept { bits_.set(i, Orders::kSetBit); }
  [[nodiscard]] bool has(std::uint32_t i) const noexcept { return bits_.has(i); }

  // Sleeps until an entry may be free, or for so long, or for no reason.
  void wait(std::uint64_t nanoseconds = sync::kForever) noexcept {
    const std::uint32_t seen = space_->fetch_or(1, Orders::kSetSleeping) | 1;
    if (bits_.any(Orders::kRecheck)) return;
    A::wait_shared(*space_, seen, nanoseconds);
    // The waking thread cleared the flag, and cannot know whether others sleep.
    space_->fetch_or(1, Orders::kSetSleeping);
  }
  // After a wait was successful: another entry may be free, for which no waiter was woken.
  void pass_on() noexcept {
    if (bits_.any(Orders::kRecheck)) notify_one();
  }
  // Wakes one client that waits, if any does.
  void notify_one() noexcept {
    std::uint32_t seen = space_->load(Orders::kReadSleepers);
    // Odd: a client may sleep. One more is even. relaxed: it only has to differ.
    if ((seen & 1) != 0 &&
        space_->compare_exchange_strong(seen, seen + 1, std::memory_order_relaxed, std::memory_order_relaxed))
      A::notify_one_shared(*space_);
  }
  void notify_all() noexcept {
    space_->fetch_add(2, std::memory_order_relaxed);  // relaxed: only has to differ; the flag stays
    A::notify_all_shared(*space_);
  }

  [[nodiscard]] bool has_damage() const noexcept { return bits_.has_damage(); }
  void reset() noexcept { bits_.reset(); }

 private:
  const std::uint32_t entries_;
  TableBits<A> bits_;
  Word* const cursor_;
  Word* const space_;  // a futex; odd: a client may wait for an entry
};

}  // namespace freehold::process
