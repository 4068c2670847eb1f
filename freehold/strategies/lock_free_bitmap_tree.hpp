// SPDX-License-Identifier: MIT
// A hierarchy of bitmaps without a lock: one bit for each slot, and above it a SummaryTree whose bits are hints. It is the
// successor of the pool S5 of "Memory management, pools compared". acquire takes from the word where its thread worked last;
// when that is empty, the tree leads to the next. A thread that finds an empty word behind a summary's bit clears the bit,
// looks again, and restores it if it was wrong (summary_tree.hpp).
//
//   Invariant: a bit is set  <=>  its slot is free and no thread holds it (free_words.hpp). At rest, a word that is not zero
//   is in the tree.
//
// While a summary's bit is cleared and restored its word is invisible to a search, so an acquire ends in null only after
// a sweep over the words themselves (shortage.hpp).
//
// Linearisation: acquire at its compare-exchange (null: where shortage.hpp says), release at its addition. Any thread;
// lock-free. Cost: one atomic each on the word's line; one load a level when a word is used up; one atomic a level when a
// word was empty. An acquire that fails: a load for every 64 slots. Bookkeeping: 1 bit a slot, a 63rd of that, and a
// constant.
#pragma once
#include <cstddef>
#include <cstdint>

#include "freehold/pool/memory.hpp"
#include "freehold/slots/summary_tree.hpp"
#include "freehold/strategies/cursors.hpp"
#include "freehold/strategies/free_words.hpp"
#include "freehold/strategies/shortage.hpp"
#include "freehold/strategies/slot_set_pool.hpp"

namespace freehold::pool {

struct LockFreeBitmapTreeOrders {
  FreeWordsOrders words;
  ShortageOrders shortage;
};

// The free slots of a pool, as numbers: the set of the strategy lock-free-bitmap-tree, and that caches refill from.
template <sync::Atomics A, LockFreeBitmapTreeOrders O = LockFreeBitmapTreeOrders{}>
class FreeSlotTree {
 public:
  static constexpr std::size_t kNone = Slots::kNone;
  struct Taken {
    std::size_t word = 0;
    std::uint64_t bits = 0;  // 0: none
    friend bool operator==(const Taken&, const Taken&) = default;
  };

  // All of `slots` are free. Errors: std::bad_alloc.
  explicit FreeSlotTree(std::size_t slots)
      : words_(slots), summaries_(Tree::words_for(words_.words())), cursors_(words_.words()) {
    tree_.attach(summaries_.data(), 1, words_.words());
    for (std::size_t w = 0; w < words_.words(); ++w) tree_.set(static_cast<std::uint32_t>(w));
  }

  // A free slot, or kNone.
  template <class Contention>
  [[nodiscard]] std::size_t take(Contention& contention) noexcept {
    return take_by(kNone, [&](std::size_t word) { return words_.take(word, contention); });
  }
  // Between 1 and `want` free slots of one word; or none.
  template <class Contention>
  [[nodiscard]] Taken take_some(unsigned want, Contention& contention) noexcept {
    return take_by(Taken{}, [&](std::size_t word) {
      const std::uint64_t bits = words_.take_some(word, want, contention);
      return bits == 0 ? Taken{} : Taken{word, bits};
    });
  }

  void put(std::size_t slot, auto&) noexcept { put_some({slot >> 6, base::bit(slot & 63)}); }
  void put_some(Taken slots) noexcept {
    if (words_.put_all(slots.word, slots.bits)) tree_.set(static_cast<std::uint32_t>(slots.word));
    shortage_.released();
  }

  // Gives back slot `number` and those that next() returns until kNone, those of one word that follow each other together.
  template <class Next>
  void put_run(std::size_t number, Next&& next) noexcept {
    Taken run{number >> 6, base::bit(number & 63)};
    while ((number = next()) != kNone) {
      if (number >> 6 != run.word) {
        put_some(run);
        run = {number >> 6, 0};
      }
      run.bits |= base::bit(number & 63);
    }
    put_some(run);
  }

  // The invariant between the words and the tree; call at rest.
  [[nodiscard]] bool check_invariants() const noexcept {
    for (std::size_t w = 0; w < words_.words(); ++w)
      if (words_.any(w) && !tree_.test(static_cast<std::uint32_t>(w))) return false;
    return tree_.check_invariants();
  }

 private:
  using Tree = SummaryTree<A>;

  template <class T, class Take>
  [[nodiscard]] T take_by(T none, Take&& take) noexcept {
    const std::size_t here = cursors_.here();
    if (T found = take(here); found != none) [[likely]]
      return found;
    if (T found = search(none, take, here); found != none) return found;
    return shortage_.search(none, [&] {
      for (std::size_t w = 0; w < words_.words(); ++w)
        if (T found = take(w); found != none) return found;
      return none;
    });
  }

  // Takes from the first word at or after `here` that the tree knows, then from the start on.
  template <class T, class Take>
  [[nodiscard]] T search(T none, Take&& take, std::size_t here) noexcept {
    for (const std::size_t start : {here, std::size_t{0}}) {
      for (auto from = static_cast<std::uint32_t>(start);; ++from) {
        from = tree_.find(from);
        if (from == Tree::kNone) break;
        if (T found = take(from); found != none) {
          cursors_.move(from);
          return found;
        }
        tree_.retire(from, [&] { return words_.any(from); });
      }
    }
    return none;
  }

  FreeWords<A, O.words> words_;
  ZeroedArray<typename Tree::Word> summaries_;
  Tree tree_;
  Cursors<A> cursors_;
  Shortage<A, O.shortage> shortage_;
};

/// A hierarchy of bits without a lock: any free slot is found in nearly constant time.
struct LockFreeBitmapTree {
  static constexpr std::string_view kName = "lock-free-bitmap-tree";
  static constexpr bool kFindsLast = true;
  static constexpr double kBookkeepingBytes = 64.0 / 63 / 8;
  static constexpr LockFreeBitmapTreeOrders kOrders{};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, LockFreeBitmapTreeOrders O = kOrders>
  using Pool = SlotSetPool<FreeSlotTree<A, O>, Contention>;
};

}  // namespace freehold::pool
