// SPDX-License-Identifier: MIT
// A word pool in two or more pools' hands, as the models of it use one.
// Oracle: every slot carries a plain stamp that its holder writes when taking and clears when giving back, so a slot
// handed out twice, or without the former holder's writes, is a data race or a wrong stamp. At rest the summaries cover
// every free slot, and taking until nothing is found yields every slot once.
#pragma once
#include <algorithm>
#include <bit>
#include <vector>

#include "freehold/slots/word_pool.hpp"
#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"

namespace freehold::model {

using pool::Cursor;
using pool::Taken;
using pool::word_index;
using pool::WordIndex;
using sim::SimAtomics;

// A mutant may change these. Each derives and hides one name.
struct FaithfulWordPool {
  using Atomics = SimAtomics;
  using Orders = pool::WordPoolOrders;
  static constexpr bool kVerifies = true;          // whether the span still belongs to the pool is asked after the take
  static constexpr bool kGivesBack = true;         // and returned if it was another's
  static constexpr bool kAnnouncesToOwner = true;  // an announcement goes to the pool that the span belongs to now
};

inline constexpr unsigned kWords = 2;       // words of a span
inline constexpr unsigned kTwoWords = 66;   // slots: 64 in word 0, two in word 1
inline constexpr unsigned kOneWord = 2;     // slots of a small span, which can be handed out whole
inline constexpr unsigned kStamped = 3;     // slots of a word that carry a stamp: all that the scenarios hand out singly
inline constexpr unsigned kMaxSpans = 128;  // two levels of summaries
inline constexpr unsigned kTags = 3;        // 0: no pool's
inline constexpr unsigned kStripes = 2;     // stripes of the pools' trees, at most

template <class Traits>
class WordPoolWorld {
 public:
  using A = typename Traits::Atomics;
  using Word = typename A::template atomic<std::uint64_t>;

  struct Storage {
    WordPoolWorld* world;
    unsigned tag;  // tag of the pool that uses this
    Word& word(WordIndex index) const noexcept { return world->words_[pool::span_of(index)][pool::word_in_span(index)]; }
    Word& summary(std::uint32_t span) const noexcept { return world->summaries_[span]; }
    bool belongs(std::uint32_t span, unsigned tag) const noexcept {
      return !Traits::kVerifies || world->owners_[span].load(std::memory_order_acquire) == tag;
    }
    auto& last_user(std::uint32_t span) const noexcept { return world->last_users_[span]; }
    bool is_left_to(pool::LastUser user, unsigned) const noexcept { return user.thread() == 1; }
    pool::SummaryTree<A>* tree_of(std::uint32_t span) const noexcept {
      const unsigned owner =
          Traits::kAnnouncesToOwner ? world->owners_[span].load(std::memory_order_acquire) : static_cast<std::uint8_t>(tag);
      return owner != 0 ? &world->pools_[owner].tree() : nullptr;
    }
  };
  struct Config {
    using Storage = WordPoolWorld::Storage;
    using Orders = typename Traits::Orders;
  };
  using Pool = pool::WordPool<A, Config>;

  explicit WordPoolWorld(unsigned slots = kTwoWords, unsigned spans = 2, unsigned stripes = 1)
      : shape_{slots}, span_count_(spans) {
    current_ = this;
    std::fill(std::begin(in_take_all_), std::end(in_take_all_), false);  // the former execution may have been cut short
    for (unsigned tag = 1; tag < kTags; ++tag) {
      storage_[tag] = {this, tag};
      pools_[tag].attach(&storage_[tag], tag, shape_, tree_words_ + tag * kStripes, kTags * kStripes, spans, stripes);
    }
    for (unsigned b = 0; b < spans; ++b) owners_[b].store(1, std::memory_order_relaxed);
  }

  Pool& pool(unsigned tag = 1) { return pools_[tag]; }

  // ---- set-up: everything is in use, and no thread's, at first

  // Makes slots free, with every summary as a put would leave it.
  void free_at_first(WordIndex index, std::uint64_t bits) {
    (void)pool_of(index).put(index, bits);
    free_slots_ += static_cast<unsigned>(std::popcount(bits));
  }
  void free_span_at_first(std::uint32_t span) {
    for (unsigned w = 0; w < shape_.words(); ++w) free_at_first(word_index(span, w), shape_.full(w));
  }
  // The next thread to ask for it holds these slots from the start.
  std::vector<Taken> held_at_first(std::vector<Taken> slots, unsigned holder) {
    for (const Taken& t : slots) {
      free_slots_ += static_cast<unsigned>(std::popcount(t.bits));
      for_each_stamp(t, [&](auto& stamp) { stamp.store(holder + 1); });
    }
    return slots;
  }
  // Leaves summaries behind that promise slots where there are none.
  void leave_stale_summaries(std::uint32_t span) {
    for (unsigned w = 0; w < shape_.words(); ++w) {
      (void)pool_of(word_index(span, w)).put(word_index(span, w), 1);
      words_[span][w].store(0, std::memory_order_relaxed);
    }
  }

  // ---- what threads do

  // Takes up to `want` slots; the stamps show whether another thread has them.
  Taken take(Cursor& cursor, unsigned want, unsigned tag = 1, unsigned max_foreign_spans = 0) {
    const Taken t = take_verified(cursor, want, tag, max_foreign_spans);
    acquired(t);
    if (t.bits != 0) SIM_CHECK(owners_[pool::span_of(t.word)].load(std::memory_order_relaxed) == tag);
    return t;
  }
  // As ArenaSlots::take_slots() does.
  Taken take_verified(Cursor& cursor, unsigned want, unsigned tag, unsigned max_foreign_spans) {
    for (;;) {
      const Taken t = pools_[tag].find(cursor, want, sim::thread_index() + 1, max_foreign_spans);
      if (t.bits == 0) return t;
      if (storage_[tag].belongs(pool::span_of(t.word), tag)) {
        pools_[tag].settle(cursor, t.word, sim::thread_index() + 1);
        return t;
      }
      if (!Traits::kGivesBack) return {};
      (void)pool_of(t.word).put(t.word, t.bits);
    }
  }
  void put(const Taken& t) {
    for_each_stamp(t, [](auto& stamp) {
      SIM_CHECK(stamp.load() == sim::thread_index() + 1);
      stamp.store(0);
    });
    const std::uint64_t old = pool_of(t.word).put(t.word, t.bits);
    SIM_CHECK((old & t.bits) == 0);
  }
  // Takes a whole span, gives it to another pool, and keeps its first slots. bits == 0: the span was not empty.
  Taken move_span(std::uint32_t span, unsigned to, unsigned keep = 1) {
    in_take_all_[sim::thread_index()] = true;
    const bool taken = pool_of(word_index(span, 0)).take_all(span);
    in_take_all_[sim::thread_index()] = false;
    if (!taken) return {};
    for (unsigned w = 0; w < shape_.words(); ++w) {
      const Taken all{word_index(span, w), shape_.full(w)};
      acquired(all);
      for_each_stamp(all, [](auto& stamp) { stamp.store(0); });
    }
    owners_[span].store(0, std::memory_order_relaxed);  // as the arena does: no pool's, perhaps for long
    owners_[span].store(static_cast<std::uint8_t>(to), std::memory_order_release);
    const Taken mine = pools_[to].publish(span, keep);
    acquired(mine);
    return mine;
  }
  // Takes exactly these slots, as the purger does, and gives them back.
  bool borrow(const Taken& t) {
    if (!pool_of(t.word).take_exactly(t.word, t.bits)) return false;
    acquired(t);
    put(t);
    return true;
  }

  // ---- the end: `held` is what the threads still hold

  void check_at_rest(const std::vector<Taken>& held) {
    unsigned count = 0;
    for (std::uint32_t b = 0; b < span_count_; ++b) {
      const unsigned owner = owners_[b].load(std::memory_order_relaxed);
      if (owner != 0) SIM_CHECK(pools_[owner].check_span(b));
    }
    std::vector<Taken> all = held;
    for (const Taken& t : held) count += static_cast<unsigned>(std::popcount(t.bits));
    for (unsigned tag = 1; tag < kTags; ++tag) {
      Cursor cursor;
      for (Taken t = pools_[tag].take(cursor, 64, 1, 0); t.bits != 0; t = pools_[tag].take(cursor, 64, 1, 0)) {
        count += static_cast<unsigned>(std::popcount(t.bits));
        for (const Taken& other : all) SIM_CHECK(other.word != t.word || (other.bits & t.bits) == 0);
        all.push_back(t);
      }
    }
    SIM_CHECK(count == free_slots_);
  }

  // For mutants.
  static void announce_word(const Word* word) {
    const auto i = static_cast<WordIndex>(word - &current_->words_[0][0]);
    const std::uint32_t span = i / kWords;
    current_->summaries_[span].fetch_or(base::bit(i % kWords), std::memory_order_seq_cst);
    current_->pools_[1].tree().set(span);
  }
  static bool in_take_all() { return in_take_all_[sim::thread_index()]; }

 private:
  friend Storage;
  Pool& pool_of(WordIndex index) {
    const unsigned owner = owners_[pool::span_of(index)].load(std::memory_order_acquire);
    return pools_[owner == 0 ? 1 : owner];
  }
  void acquired(const Taken& t) {
    for_each_stamp(t, [](auto& stamp) {
      SIM_CHECK(stamp.load() == 0);
      stamp.store(sim::thread_index() + 1);
    });
  }
  template <class F>
  void for_each_stamp(const Taken& t, F&& f) {
    for (std::uint64_t bits = t.bits & base::low_bits(kStamped); bits != 0; bits &= bits - 1) {
      f(stamps_[pool::span_of(t.word) % 4][pool::word_in_span(t.word)][base::lowest_bit(bits)]);
    }
  }

  pool::SpanShape shape_;
  unsigned span_count_;
  Storage storage_[kTags];
  Word words_[kMaxSpans][kWords];
  Word summaries_[kMaxSpans];
  typename A::template atomic<std::uint8_t> owners_[kMaxSpans];
  typename A::template atomic<std::uint32_t> last_users_[kMaxSpans];
  Word tree_words_[(kMaxSpans / 64 + 1) * kTags * kStripes];
  Pool pools_[kTags];
  SimAtomics::var<unsigned> stamps_[4][kWords][kStamped];
  unsigned free_slots_ = 0;
  static inline WordPoolWorld* current_ = nullptr;
  static inline bool in_take_all_[sim::kMaxThreads + 1] = {};
};

using Held = std::vector<Taken>;

}  // namespace freehold::model
