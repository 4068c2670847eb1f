// SPDX-License-Identifier: MIT
// A hierarchy of bitmaps behind a lock: level 0 has one bit for each slot, a level above one bit for each word of the level
// below that is not zero, the top is one word. Finding a free slot is one bit scan a level, whatever the pool's state: the
// constant-time pool S5 of "Memory management, pools compared", for any capacity. The article's has words of 32 bits, a lock
// on level 0 and another on the levels above; beside it stands the same with words of 64 and one lock.
//
//   Invariant, under the lock: a bit of level 0 is set  <=>  its slot is free; a bit of a level above is set  <=>  its word
//   below is not zero. With two locks: the same, under both; who changes the upper levels holds both, that of level 0 first.
//
// Linearisation: within the lock of level 0; of an acquire that fails, within that of the levels above: a release under way
// may still have to lock it. Any thread; blocks. Cost: the locks and one word a level (with words of 64 two levels to 4096
// slots, three to 262144). Bookkeeping: 1 bit a slot, a 63rd (31st) of that for the levels above, and a constant.
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "freehold/base/bits.hpp"
#include "freehold/pool/memory.hpp"
#include "freehold/strategies/pool_lock.hpp"
#include "freehold/strategies/slot_set_pool.hpp"

namespace freehold::pool {

// The words, all levels one after the other. The caller has the locks.
template <sync::Atomics A, std::unsigned_integral Bits>
class BitTree {
 public:
  static constexpr std::size_t kNone = Slots::kNone;
  static constexpr std::size_t kBits = std::numeric_limits<Bits>::digits;

  explicit BitTree(std::size_t slots) : words_(words_for(slots)) {
    std::size_t first = 0, places = slots;
    do {
      places = base::ceil_div(places, kBits);
      level_[levels_++] = first;
      first += places;
    } while (places > 1);
    for (std::size_t slot = 0; slot < slots; ++slot)
      if (put(slot)) announce(slot / kBits);
  }

  // ---- level 0

  [[nodiscard]] bool is_empty(std::size_t word) const noexcept { return at(0, word).load() == 0; }
  // Takes the lowest slot of a word. Pre: it is not empty.
  [[nodiscard]] std::size_t take(std::size_t word) noexcept {
    const Bits bits = at(0, word).load();
    at(0, word).store(bits & (bits - 1));
    return word * kBits + base::lowest_bit(bits);
  }
  // Returns whether the word was empty before.
  bool put(std::size_t slot) noexcept { return set(0, slot); }

  // ---- the levels above

  // True if level 0 is the top.
  [[nodiscard]] bool is_flat() const noexcept { return levels_ == 1; }
  // The first word of level 0 that has a free slot, or kNone. If level 0 is the top: its word.
  [[nodiscard]] std::size_t find() const noexcept {
    std::size_t place = 0;
    for (unsigned level = levels_; level-- > 1;) {
      const Bits bits = at(level, place).load();
      if (bits == 0) return kNone;  // in the top word only
      place = place * kBits + base::lowest_bit(bits);
    }
    return place;
  }
  // The word of level 0 is not empty any more.
  void announce(std::size_t word) noexcept {
    for (unsigned level = 1; level < levels_ && set(level, word); ++level) word /= kBits;
  }
  // The word of level 0 is empty now.
  void retire(std::size_t place) noexcept {
    for (unsigned level = 1; level < levels_; ++level, place /= kBits) {
      Word& word = at(level, place / kBits);
      word.store(word.load() & ~(Bits{1} << place % kBits));
      if (word.load() != 0) break;
    }
  }

 private:
  using Word = typename A::template var<Bits>;
  static constexpr unsigned kMaxLevels = 13;  // 32 to that power exceeds an address

  static std::size_t words_for(std::size_t places) noexcept {
    std::size_t total = 0;
    do {
      places = base::ceil_div(places, kBits);
      total += places;
    } while (places > 1);
    return total;
  }
  [[nodiscard]] Word& at(unsigned level, std::size_t word) const noexcept { return words_[level_[level] + word]; }
  // Returns whether the word was zero before.
  bool set(unsigned level, std::size_t place) noexcept {
    Word& word = at(level, place / kBits);
    const Bits before = word.load();
    word.store(before | Bits{1} << place % kBits);
    return before == 0;
  }

  // The constructor alone writes these.
  std::array<std::size_t, kMaxLevels> level_{};  // its first word
  unsigned levels_ = 0;
  // Under the locks.
  ZeroedArray<Word> words_;
};

template <sync::Atomics A, class Lock, std::unsigned_integral Bits>
class LockedBitTree {
 public:
  static constexpr std::size_t kNone = Slots::kNone;

  explicit LockedBitTree(std::size_t slots) : tree_(slots) {}

  template <class Contention>
  [[nodiscard]] std::size_t take(Contention& contention) noexcept {
    const PoolGuard guard(lock_, contention);
    const std::size_t word = tree_.find();
    if (word == kNone || tree_.is_empty(word)) return kNone;
    const std::size_t slot = tree_.take(word);
    if (tree_.is_empty(word)) tree_.retire(word);
    return slot;
  }
  template <class Contention>
  void put(std::size_t slot, Contention& contention) noexcept {
    const PoolGuard guard(lock_, contention);
    if (tree_.put(slot)) tree_.announce(slot / tree_.kBits);
  }

 private:
  BitTree<A, Bits> tree_;
  alignas(base::kCacheLine) Lock lock_;
};

template <sync::Atomics A, class Lock, std::unsigned_integral Bits>
class TwiceLockedBitTree {
 public:
  static constexpr std::size_t kNone = Slots::kNone;

  explicit TwiceLockedBitTree(std::size_t slots) : tree_(slots) {}

  template <class Contention>
  [[nodiscard]] std::size_t take(Contention& contention) noexcept {
    for (;;) {
      const std::size_t word = find(contention);
      if (word == kNone) return kNone;
      const PoolGuard guard(bits_lock_, contention);
      if (!tree_.is_empty(word)) {
        const std::size_t slot = tree_.take(word);
        if (tree_.is_empty(word)) change(contention, [&] { tree_.retire(word); });
        return slot;
      }
      if (tree_.is_flat()) return kNone;  // else others have emptied it since: look again
    }
  }
  template <class Contention>
  void put(std::size_t slot, Contention& contention) noexcept {
    const PoolGuard guard(bits_lock_, contention);
    if (tree_.put(slot)) change(contention, [&] { tree_.announce(slot / tree_.kBits); });
  }

 private:
  template <class Contention>
  [[nodiscard]] std::size_t find(Contention& contention) noexcept {
    const PoolGuard guard(levels_lock_, contention);
    return tree_.find();
  }
  template <class Contention, class F>
  void change(Contention& contention, F&& f) noexcept {
    const PoolGuard guard(levels_lock_, contention);
    f();
  }

  BitTree<A, Bits> tree_;
  alignas(base::kCacheLine) Lock bits_lock_;
  alignas(base::kCacheLine) Lock levels_lock_;
};

template <template <sync::Atomics A, class Lock, std::unsigned_integral Bits> class Tree, std::unsigned_integral Bits>
struct BitmapTreeOf {
  static constexpr bool kFindsLast = true;
  static constexpr double kBookkeepingBytes =
      std::numeric_limits<Bits>::digits / (std::numeric_limits<Bits>::digits - 1.0) / 8;
  static constexpr PoolLockOrders kOrders{};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, PoolLockOrders O = kOrders>
  using Pool = SlotSetPool<Tree<A, PoolLock<A, O>, Bits>, Contention>;
};
/// A hierarchy of bits behind a lock, constant in time, with words of 64.
struct LockedBitmapTree : BitmapTreeOf<LockedBitTree, std::uint64_t> {
  static constexpr std::string_view kName = "locked-bitmap-tree";
};
/// The same with words of 32, and a lock each for the slots' bits and the hierarchy: S5 of article 2.
struct LockedBitmapTree32 : BitmapTreeOf<TwiceLockedBitTree, std::uint32_t> {
  static constexpr std::string_view kName = "locked-bitmap-tree-32";
};

}  // namespace freehold::pool
