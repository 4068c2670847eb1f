// SPDX-License-Identifier: MIT
// A concurrent set of span numbers that answers "which spans may have free slots?" in a few loads.
//
// Bitmaps of 64-way summaries: level 0 has one bit a span, the top level one word. Bits are hints that err on one side:
//
//   Invariant (at rest): a non-zero word has its bit set in the level above, and a span for which the owner's
//   predicate holds has its bit set in level 0. A set bit may be stale.
//
// set() follows a change that made a span non-empty. retire() clears a stale bit, looks below again, and restores the
// bit if it was wrong. Both sides write their word before they read the other's (store buffering), hence seq_cst
// throughout; on x86 that costs nothing, since every write is a locked instruction already.
// set: one load if the bit stands, else one atomic a level. find: one load a level. Any thread; lock-free.
// Words of several trees are interleaved (stride), so that those of all size classes of a small heap share a page. A tree
// may have several stripes, sets of their own, each in one place with those of other trees.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::pool {

template <sync::Atomics A>
class SummaryTree {
 public:
  using Word = typename A::template atomic<std::uint64_t>;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr unsigned kMaxLevels = 5;  // 2^30 spans

  constexpr SummaryTree() noexcept = default;

  // Words of memory that a tree over `spans` spans needs (before the stride).
  [[nodiscard]] static constexpr std::size_t words_for(std::size_t spans) noexcept {
    std::size_t total = 0;
    do {
      spans = base::ceil_div(spans, 64);
      total += spans;
    } while (spans > 1);
    return total;
  }

  // Lays the tree over zeroed `words`: word i of stripe l is words[i * stride + l * stripe_words]. Not thread-safe.
  void attach(Word* words, std::size_t stride, std::size_t spans, std::size_t stripe_words = 1) noexcept {
    stride_ = stride;
    stripe_words_ = stripe_words;
    levels_ = 0;
    do {
      spans = base::ceil_div(spans, 64);
      level_[levels_++] = Level{words, spans};
      words += spans * stride;
    } while (spans > 1);
  }

  // Puts span `i` into the set. Call after the change that made it non-empty.
  void set(std::uint32_t i, unsigned stripe = 0) noexcept { set_from(0, i, stripe); }

  [[nodiscard]] bool test(std::uint32_t i, unsigned stripe = 0) const noexcept {
    return (at(0, i >> 6, stripe).load(std::memory_order_seq_cst) & base::bit(i & 63)) != 0;
  }

  // Returns whether the set looks empty, from the top word alone: one load, where find() would climb all levels to say so.
  [[nodiscard]] bool looks_empty(unsigned stripe = 0) const noexcept {
    return at(levels_ - 1, 0, stripe).load(std::memory_order_seq_cst) == 0;
  }

  // Takes span `i` out of the set unless `non_empty()` says, after the bit is gone, that it belongs there.
  template <class NonEmpty>
  void retire(std::uint32_t i, NonEmpty&& non_empty, unsigned stripe = 0) noexcept {
    Word* word = &at(0, i >> 6, stripe);
    word->fetch_and(~base::bit(i & 63), std::memory_order_seq_cst);
    if (non_empty()) return set_from(0, i, stripe);
    for (unsigned level = 1; level < levels_ && word->load(std::memory_order_seq_cst) == 0; ++level) {
      i >>= 6;
      Word* above = &at(level, i >> 6, stripe);
      above->fetch_and(~base::bit(i & 63), std::memory_order_seq_cst);
      if (word->load(std::memory_order_seq_cst) != 0) return set_from(level, i, stripe);
      word = above;
    }
  }

  // The first span at or after `from` that may be in the set, or kNone. Stale summaries on the way are repaired.
  [[nodiscard]] std::uint32_t find(std::uint32_t from, unsigned stripe = 0) noexcept {
    unsigned level = 0;
    std::uint32_t i = from;
    while (level < levels_) {
      if ((i >> 6) >= level_[level].words) return kNone;
      const std::uint64_t bits = at(level, i >> 6, stripe).load(std::memory_order_seq_cst) & (~std::uint64_t{0} << (i & 63));
      if (bits == 0) {  // nothing here at or after i: look above, behind this word
        i = (i >> 6) + 1;
        ++level;
        continue;
      }
      i = (i & ~std::uint32_t{63}) | base::lowest_bit(bits);
      if (level == 0) return i;
      // One level down, at the start of the word that bit i stands for.
      Word& below = at(level - 1, i, stripe);
      if (below.load(std::memory_order_seq_cst) == 0) {
        at(level, i >> 6, stripe).fetch_and(~base::bit(i & 63), std::memory_order_seq_cst);
        if (below.load(std::memory_order_seq_cst) != 0) set_from(level, i, stripe);
        continue;
      }
      --level;
      i <<= 6;
    }
    return kNone;
  }

  // Returns whether span `i` is in the set and found from the top; call at rest.
  [[nodiscard]] bool check_path(std::uint32_t i, unsigned stripe = 0) const noexcept {
    for (unsigned level = 0; level < levels_; ++level, i >>= 6)
      if ((at(level, i >> 6, stripe).load(std::memory_order_relaxed) & base::bit(i & 63)) == 0) return false;
    return true;
  }

  // The invariant between the levels; call at rest.
  [[nodiscard]] bool check_invariants(unsigned stripe = 0) const noexcept {
    for (unsigned level = 0; level + 1 < levels_; ++level)
      for (std::uint32_t w = 0; w < level_[level].words; ++w)
        if (at(level, w, stripe).load(std::memory_order_relaxed) != 0 &&
            (at(level + 1, w >> 6, stripe).load(std::memory_order_relaxed) & base::bit(w & 63)) == 0)
          return false;
    return true;
  }

 private:
  struct Level {
    Word* first = nullptr;
    std::size_t words = 0;
  };

  [[nodiscard]] Word& at(unsigned level, std::size_t word, unsigned stripe) const noexcept {
    return level_[level].first[word * stride_ + stripe * stripe_words_];
  }

  void set_from(unsigned level, std::uint32_t i, unsigned stripe) noexcept {
    for (; level < levels_; ++level, i >>= 6) {
      Word& word = at(level, i >> 6, stripe);
      if ((word.load(std::memory_order_seq_cst) & base::bit(i & 63)) != 0) return;  // the thread that set it sets the rest
      word.fetch_or(base::bit(i & 63), std::memory_order_seq_cst);
    }
  }

  std::array<Level, kMaxLevels> level_{};
  std::size_t stride_ = 1, stripe_words_ = 1;
  unsigned levels_ = 0;
};

}  // namespace freehold::pool
