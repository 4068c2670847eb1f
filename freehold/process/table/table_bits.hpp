// SPDX-License-Identifier: MIT
// Bits in a task table: one for each entry or each worker's slot, 64 to a cache line; and the memory orders of the table.
//
//   bits.set(i, order);
//   if (bits.clear(i, order)) ...        // one of several threads has cleared it
//   bits.visit(begin, set, look);        // look(i) for each bit, once round from `begin`
//
// A bit decides nothing. It says that a word or a sleeper is worth a look. It is set after the word and cleared before it,
// so that it may be stale; or it may be missing, because a process died in between, until the supervisor sets it again.
//
// Damage: a worker may write anywhere here. Invariant: no function reports a position at or beyond the size; a bit there is
// cleared when it is met.
//
// Threads: any thread of any process. Cost: one operation on a shared line for each bit that is set or cleared.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>

#include "freehold/base/bits.hpp"
#include "freehold/process/table/task_table_layout.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::process {

struct TaskTableOrders {
  // acquire: pairs with kRelease; the process that takes an entry sees what its former owner wrote into it.
  static constexpr std::memory_order kAcquire = std::memory_order_acquire;
  // release: pairs with kAcquire; publishes input, output or failure, and for a freed entry that they were read.
  static constexpr std::memory_order kRelease = std::memory_order_release;

  // A thread that sets a bit reads afterwards who sleeps; a thread that goes to sleep announces it and then checks the bits
  // again. All four are seq_cst, or both could miss the other (store buffering). release, too: the entry's word is visible
  // to the thread that clears the bit.
  static constexpr std::memory_order kSetBit = std::memory_order_seq_cst;
  static constexpr std::memory_order kReadSleepers = std::memory_order_seq_cst;
  static constexpr std::memory_order kSetSleeping = std::memory_order_seq_cst;
  static constexpr std::memory_order kRecheck = std::memory_order_seq_cst;
  // acquire: pairs with kSetBit; else the word could seem older than its bit, and the bit would be lost.
  static constexpr std::memory_order kClearBit = std::memory_order_acquire;

  // acquire and release: a worker that close() wakes sees that the table is closed.
  static constexpr std::memory_order kReadWakes = std::memory_order_acquire;
  static constexpr std::memory_order kAddWake = std::memory_order_release;
};

// `kSets` sets of the same positions lie side by side on each line.
template <sync::SharedAtomics A, unsigned kSets = 1>
class TableBits {
  using Layout = TaskTableLayout<A>;
  using Line = typename Layout::template BitsOf<kSets>;
  using Word = typename A::template atomic<std::uint64_t>;

 public:
  TableBits(const Layout& layout, std::uint64_t offset, std::uint32_t size) noexcept
      : size_(size), count_(static_cast<std::uint32_t>(Layout::words(size))), lines_(layout.template at<Line>(offset)) {}

  void set(std::uint32_t i, std::memory_order order, unsigned set = 0) noexcept {
    word(i, set).fetch_or(base::bit(i % 64), order);
  }
  // Returns whether this call has cleared it.
  bool clear(std::uint32_t i, std::memory_order order, unsigned set = 0) noexcept {
    return (word(i, set).fetch_and(~base::bit(i % 64), order) & base::bit(i % 64)) != 0;
  }
  // relaxed: a hint.
  [[nodiscard]] bool has(std::uint32_t i, unsigned set = 0) const noexcept {
    return (word(i, set).load(std::memory_order_relaxed) & base::bit(i % 64)) != 0;
  }
  // Returns whether any set has a bit.
  [[nodiscard]] bool any(std::memory_order order) const noexcept {
    for (std::uint32_t w = 0; w < count_; ++w)
      for (const Word& bits : lines_[w].bits)
        if (bits.load(order) != 0) return true;
    return false;
  }
  // Clears one bit of the first set and returns its position; none if there is no bit. relaxed, the clearing: the bit is a
  // token, which belongs to the thread that clears it.
  [[nodiscard]] std::optional<std::uint32_t> take_one(std::memory_order read) noexcept {
    for (std::uint32_t w = 0; w < count_; ++w)
      for (std::uint64_t bits = lines_[w].bits[0].load(read); bits != 0; bits &= bits - 1) {
        const std::uint32_t i = w * 64 + base::lowest_bit(bits);
        if (clear(i, std::memory_order_relaxed) && i < size_) return i;
      }
    return std::nullopt;
  }
  // Calls `look(i)` for each bit of the set, once round from `begin`, until it returns true.
  template <class Look>
  void visit(std::uint32_t begin, unsigned set, Look look) const noexcept {
    // relaxed: clearing the bit decides. A bit that is missed here is found by the check before sleeping.
    const std::uint64_t first = word(begin, set).load(std::memory_order_relaxed);
    const std::uint64_t before_begin = base::low_bits(begin % 64);
    for (std::uint32_t step = 0; step <= count_; ++step) {
      const std::uint32_t w = (begin / 64 + step) % count_;
      std::uint64_t bits = 0;
      if (step == 0)
        bits = first & ~before_begin;
      else
        bits = step == count_ ? first & before_begin : lines_[w].bits[set].load(std::memory_order_relaxed);
      for (; bits != 0; bits &= bits - 1) {
        const std::uint32_t i = w * 64 + base::lowest_bit(bits);
        if (i >= size_)
          lines_[w].bits[set].fetch_and(~base::bit(i % 64), std::memory_order_relaxed);
        else if (look(i))
          return;
      }
    }
  }

  // Returns whether there are bits beyond the size, which are damage.
  [[nodiscard]] bool has_damage() const noexcept {
    if (size_ % 64 == 0) return false;
    for (const Word& bits : lines_[size_ / 64].bits)
      if ((bits.load(std::memory_order_relaxed) & ~base::low_bits(size_ % 64)) != 0) return true;
    return false;
  }
  // Clears every bit. Pre: no worker lives.
  void reset() noexcept {
    for (std::uint32_t w = 0; w < count_; ++w)
      for (Word& bits : lines_[w].bits) bits.store(0, std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] Word& word(std::uint32_t i, unsigned set) const noexcept { return lines_[i / 64].bits[set]; }

  // Copies: those in the table may be damaged.
  const std::uint32_t size_, count_;
  Line* const lines_;
};

}  // namespace freehold::process
