// SPDX-License-Identifier: MIT
// The tasks of a table that wait for a worker, and their order.
//
//   ready.set_submitted(entry, time);      // before the entry's word says that it is ready
//   ready.add(entry, priority);            // after it
//   ready.find([&](std::uint32_t entry) { return claim_it_by_its_word(entry); });
//
// Order: a worker takes a task of the highest priority that has a ready one. Among these it takes the one submitted first of
// the next kCompared in the table, round and round from where the last one was found. So tasks of one priority start in the
// order of their submission while at most kCompared of them wait, and none is passed over for ever by its equals. A task
// waits as long as there are tasks of a higher priority.
//
// Invariant: of a task in entry i, find() meets the bit of its priority or none. A bit in the word of another priority
// harms nothing but the order.
//
// Threads: any thread of any process.
#pragma once
#include <cstdint>
#include <optional>

#include "freehold/process/table/table_bits.hpp"

namespace freehold::process {

template <sync::SharedAtomics A, class Orders>
class ReadyTasks {
  using Layout = TaskTableLayout<A>;
  using Word = typename A::template atomic<std::uint64_t>;

 public:
  explicit ReadyTasks(const Layout& layout) noexcept
      : entries_(layout.shape.entries),
        bits_(layout, layout.ready, entries_),
        submitted_(layout.template at<Word>(layout.submitted)),
        cursors_(layout.template word<std::uint64_t>(Layout::SharedWord::kReadyCursors)) {}

  // When the entry's task was submitted. relaxed: published by its word.
  void set_submitted(std::uint32_t i, std::uint64_t time) noexcept { submitted_[i].store(time, std::memory_order_relaxed); }
  void add(std::uint32_t i, unsigned priority) noexcept { bits_.set(i, Orders::kSetBit, priority); }
  [[nodiscard]] bool has(std::uint32_t i, unsigned priority) const noexcept { return bits_.has(i, priority); }
  [[nodiscard]] bool any(std::memory_order order) const noexcept { return bits_.any(order); }
  // The first result of `take(entry)` that is one, of the ready tasks in the order of the head. Clears the entry's bit
  // before.
  template <class Take>
  [[nodiscard]] auto find(Take take) noexcept -> decltype(take(0)) {
    // relaxed: where to begin; any entry is right.
    const std::uint64_t cursors = cursors_->load(std::memory_order_relaxed);
    for (unsigned priority = 0; priority < kPriorities; ++priority)
      if (const auto taken = take_oldest(priority, cursors, take)) return taken;
    return {};
  }

  [[nodiscard]] bool has_damage() const noexcept { return bits_.has_damage(); }
  void reset() noexcept { bits_.reset(); }

 private:
  // Ready tasks of which a worker takes the oldest. Their times lie on 8 to 64 cache lines.
  static constexpr unsigned kCompared = 64;

  // The entry of the oldest ready task of this priority among the next kCompared from `begin` on; none if none is ready.
  [[nodiscard]] std::optional<std::uint32_t> oldest(unsigned priority, std::uint32_t begin) const noexcept {
    std::optional<std::uint32_t> found;
    std::uint64_t found_time = 0;
    unsigned looked_at = 0;
    // relaxed: a hint; it may still be the time of the entry's former task.
    const auto time_of = [this](std::uint32_t i) { return submitted_[i].load(std::memory_order_relaxed); };
    bits_.visit(begin, priority, [&](std::uint32_t i) {
      if (looked_at == 1) found_time = time_of(*found);  // one alone need not be compared
      if (const std::uint64_t time = looked_at == 0 ? 0 : time_of(i); looked_at == 0 || time < found_time) {
        found = i;
        found_time = time;
      }
      return ++looked_at == kCompared;
    });
    return found;
  }
  template <class Take>
  [[nodiscard]] auto take_oldest(unsigned priority, std::uint64_t cursors, Take take) noexcept -> decltype(take(0)) {
    const unsigned shift = 16 * priority;
    // Again if another worker was faster.
    while (const std::optional<std::uint32_t> i = oldest(priority, (cursors >> shift & 0xffff) % entries_)) {
      if (!bits_.clear(*i, Orders::kClearBit, priority)) continue;
      const auto taken = take(*i);
      if (!taken) continue;
      const std::uint64_t others = cursors & ~(std::uint64_t{0xffff} << shift);
      cursors_->store(others | std::uint64_t{(*i + 1) & 0xffff} << shift, std::memory_order_relaxed);
      return taken;
    }
    return {};
  }

  const std::uint32_t entries_;
  TableBits<A, kPriorities> bits_;
  Word* const submitted_;  // the time, of each entry's task
  Word* const cursors_;    // where to begin, 16 bits for each priority
};

}  // namespace freehold::process
