// SPDX-License-Identifier: MIT
// pool::WordPool and SummaryTree on the simulated machine: refill against drain, against taking all of a span for another
// pool, against the purger, in two and three threads; then mutants of the orders and of each step that holds the protocol
// together.
// Oracle: every slot carries a plain stamp that its holder writes when taking and clears when giving back, so a slot
// handed out twice, or without the former holder's writes, is a data race or a wrong stamp. At rest the summaries cover
// every free slot, and taking until nothing is found yields every slot once.
#include "freehold/slots/word_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/expect_ok.hpp"

namespace freehold {
namespace {

using pool::Cursor;
using pool::Taken;
using pool::word_index;
using pool::WordIndex;
using sim::Failure;
using sim::Options;
using sim::Result;
using sim::SimAtomics;

// What a mutant may change. Each derives and hides one name.
struct Faithful {
  using Atomics = SimAtomics;
  using Orders = pool::WordPoolOrders;
  static constexpr bool kVerifies = true;          // whether the span still belongs to the pool is asked after the take
  static constexpr bool kGivesBack = true;         // and returned if it was another's
  static constexpr bool kAnnouncesToOwner = true;  // an announcement goes to the pool that the span belongs to now
};

inline constexpr unsigned kWords = 2;       // of a span
inline constexpr unsigned kTwoWords = 66;   // slots: 64 in word 0, two in word 1
inline constexpr unsigned kOneWord = 2;     // slots of a small span, which can be handed out whole
inline constexpr unsigned kStamped = 3;     // slots of a word that carry a stamp: all that the scenarios hand out singly
inline constexpr unsigned kMaxSpans = 128;  // two levels of summaries
inline constexpr unsigned kTags = 3;        // 0: nobody's
inline constexpr unsigned kStripes = 2;     // of the pools' trees, at most

template <class Traits>
class World {
 public:
  using A = typename Traits::Atomics;
  using Word = typename A::template atomic<std::uint64_t>;

  struct Storage {
    World* world;
    unsigned tag;  // of the pool that uses this
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
    using Storage = World::Storage;
    using Orders = typename Traits::Orders;
  };
  using Pool = pool::WordPool<A, Config>;

  explicit World(unsigned slots = kTwoWords, unsigned spans = 2, unsigned stripes = 1) : shape_{slots}, span_count_(spans) {
    current_ = this;
    std::fill(std::begin(in_take_all_), std::end(in_take_all_), false);  // the former execution may have been cut short
    for (unsigned tag = 1; tag < kTags; ++tag) {
      storage_[tag] = {this, tag};
      pools_[tag].attach(&storage_[tag], tag, shape_, tree_words_ + tag * kStripes, kTags * kStripes, spans, stripes);
    }
    for (unsigned b = 0; b < spans; ++b) owners_[b].store(1, std::memory_order_relaxed);
  }

  Pool& pool(unsigned tag = 1) { return pools_[tag]; }

  // ---- set-up: everything is in use by nobody at first

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
  // As Arena::take_slots() does.
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
    owners_[span].store(0, std::memory_order_relaxed);  // as the arena does: nobody's, perhaps for long
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
  static inline World* current_ = nullptr;
  static inline bool in_take_all_[sim::kMaxThreads + 1] = {};
};

using Held = std::vector<Taken>;

// ---- scenarios: each is a template over the traits, so that the mutants run them too

// One slot goes round: the thread that finds it gives it back.
template <class Traits>
Result refill_against_drain(Options options) {
  options.name += "refill/drain";
  return sim::explore(options, [](sim::Execution& run) {
    World<Traits> world;
    world.free_at_first(word_index(0, 0), 1);
    for (int i = 0; i < 2; ++i) {
      run.spawn([&] {
        Cursor cursor;
        for (int round = 0; round < 2; ++round) {
          if (const Taken t = world.take(cursor, 64); t.bits != 0) world.put(t);
        }
      });
    }
    run.check([&] { world.check_at_rest({}); });
  });
}

// One thread gives back to two words of an empty span, whose summaries still promise slots; another searches.
template <class Traits>
Result drain_against_stale_summaries(Options options) {
  options.name += "drain/stale";
  return sim::explore(options, [](sim::Execution& run) {
    World<Traits> world;
    const Held held = world.held_at_first({{word_index(0, 0), 1}, {word_index(0, 1), 2}}, 0);
    world.leave_stale_summaries(0);
    Taken found[2];
    run.spawn([&] {
      for (const Taken& t : held) world.put(t);
    });
    run.spawn([&] {
      Cursor cursor;
      for (Taken& t : found) t = world.take(cursor, 64);
    });
    run.check([&] { world.check_at_rest({found[0], found[1]}); });
  });
}

// The same across the levels of the summary tree: the spans lie under different words of level 0.
template <class Traits>
Result drain_against_search_in_two_levels(Options options) {
  options.name += "drain/levels";
  return sim::explore(options, [](sim::Execution& run) {
    World<Traits> world(kTwoWords, kMaxSpans);
    const Held held = world.held_at_first({{word_index(65, 0), 1}}, 0);
    world.leave_stale_summaries(65);
    Taken found;
    run.spawn([&] { world.put(held[0]); });
    run.spawn([&] {
      Cursor cursor;
      found = world.take(cursor, 64);
    });
    run.check([&] { world.check_at_rest({found}); });
  });
}

// Single slots by compare-exchange, whole words by exchange, and a drain into the same word.
template <class Traits>
Result parts_against_wholes(Options options) {
  options.name += "part/whole";
  return sim::explore(options, [](sim::Execution& run) {
    World<Traits> world;
    world.free_at_first(word_index(0, 0), 3);
    const Held held = world.held_at_first({{word_index(0, 0), 4}}, 0);
    Taken found[2];
    run.spawn([&] {
      Cursor cursor;
      world.put(held[0]);
      found[0] = world.take(cursor, 1);
    });
    run.spawn([&] {
      Cursor cursor;
      found[1] = world.take(cursor, 64);
    });
    run.check([&] { world.check_at_rest({found[0], found[1]}); });
  });
}

// The last slot of a span comes back while another thread tries to take all of the span for another pool.
template <class Traits>
Result drain_against_take_all(Options options) {
  options.name += "drain/take_all";
  return sim::explore(options, [](sim::Execution& run) {
    World<Traits> world;
    world.free_at_first(word_index(0, 0), ~std::uint64_t{0});
    world.free_at_first(word_index(0, 1), 1);
    const Held held = world.held_at_first({{word_index(0, 1), 2}}, 0);
    Taken kept;
    run.spawn([&] { world.put(held[0]); });
    run.spawn([&] {
      kept = world.move_span(0, 2);
      if (kept.bits == 0) kept = world.move_span(0, 2);
    });
    run.check([&] { world.check_at_rest({kept}); });
  });
}

// A wholly free span moves from pool 1 to pool 2 while a searcher of pool 1 and one of pool 2 pass through.
template <class Traits>
Result refill_against_move(Options options, bool both) {
  options.name += both ? "refill/move/refill" : "refill/move";
  return sim::explore(options, [=](sim::Execution& run) {
    World<Traits> world;
    world.free_span_at_first(0);
    Taken kept, found[2];
    run.spawn([&] { kept = world.move_span(0, 2); });
    for (unsigned i = 0; i < (both ? 2U : 1U); ++i) {
      run.spawn([&, i] {
        Cursor cursor;
        found[i] = world.take(cursor, 64, 1 + i);
      });
    }
    run.check([&] { world.check_at_rest({kept, found[0], found[1]}); });
  });
}

// There and back: the span changes hands twice, so what a slow searcher knows is twice out of date.
template <class Traits>
Result refill_against_two_moves(Options options) {
  options.name += "refill/moves";
  return sim::explore(options, [](sim::Execution& run) {
    World<Traits> world;
    world.free_span_at_first(0);
    Taken kept, found;
    run.spawn([&] {
      kept = world.move_span(0, 2);
      if (kept.bits == 0) return;
      world.put(kept);
      const Taken again = world.move_span(0, 1);
      kept = again;
    });
    run.spawn([&] {
      Cursor cursor;
      found = world.take(cursor, 64, 1);
      if (found.bits != 0) world.put(found);
    });
    run.check([&] { world.check_at_rest({kept}); });
  });
}

// The last slot comes back, a second thread takes all of the span, a third searches: what a failed attempt took apart must
// come back whole.
template <class Traits>
Result drain_against_take_all_and_refill(Options options) {
  options.name += "drain/take_all/refill";
  return sim::explore(options, [](sim::Execution& run) {
    World<Traits> world;
    world.free_at_first(word_index(0, 0), ~std::uint64_t{0});
    world.free_at_first(word_index(0, 1), 1);
    const Held held = world.held_at_first({{word_index(0, 1), 2}}, 0);
    Taken kept, found;
    run.spawn([&] { world.put(held[0]); });
    run.spawn([&] { kept = world.move_span(0, 2); });
    run.spawn([&] {
      Cursor cursor{.word = word_index(0, 1)};
      found = world.take(cursor, 64);
    });
    run.check([&] { world.check_at_rest({kept, found}); });
  });
}

// A span is filled by its last put, taken away before that put has announced it, handed out whole by its new pool, and
// filled again: the late announcement may not make the new pool's put believe that the span is in its tree.
template <class Traits>
Result late_announcement(Options options, bool searched) {
  options.name += searched ? "late/search" : "late";
  return sim::explore(options, [=](sim::Execution& run) {
    World<Traits> world(kOneWord);
    const Held held = world.held_at_first({{word_index(0, 0), 3}}, 0);
    run.spawn([&] { world.put(held[0]); });
    run.spawn([&] {
      const Taken all = world.move_span(0, 2, kOneWord);
      if (all.bits != 0) world.put(all);
    });
    if (searched) {
      run.spawn([&] {
        Cursor cursor;
        if (const Taken t = world.take(cursor, 64, 2); t.bits != 0) world.put(t);
      });
    }
    run.check([&] { world.check_at_rest({}); });
  });
}

// Threads that prefer their own spans, in a tree with two stripes: spans move from stripe to stripe with their users, and
// may not fall between.
template <class Traits>
Result refills_in_stripes(Options options, unsigned max_foreign_spans) {
  options.name += "stripes" + std::to_string(max_foreign_spans);
  return sim::explore(options, [=](sim::Execution& run) {
    World<Traits> world(kOneWord, 2, kStripes);
    world.free_at_first(word_index(0, 0), 3);
    const Held held = world.held_at_first({{word_index(1, 0), 1}}, 0);
    Taken found[2];
    run.spawn([&] {
      Cursor cursor;
      world.put(held[0]);
      found[0] = world.take(cursor, 64, 1, max_foreign_spans);
    });
    run.spawn([&] {
      Cursor cursor;
      const Taken t = world.take(cursor, 64, 1, max_foreign_spans);
      if (t.bits != 0) world.put(t);
      found[1] = world.take(cursor, 64, 1, max_foreign_spans);
    });
    run.check([&] { world.check_at_rest({found[0], found[1]}); });
  });
}

// A thread takes over a span that another one left, while that comes back, and none of the spans that are left to thread 1.
template <class Traits>
Result take_over(Options options) {
  options.name += "take_over";
  return sim::explore(options, [](sim::Execution& run) {
    World<Traits> world(kOneWord);
    Cursor users[2];
    Taken found;
    for (const std::uint32_t span : {0U, 1U}) {
      world.pool().mark_active(users[span], span, span + 1);
      world.free_at_first(word_index(span, 0), 1);
      run.spawn([&, span] {
        users[span].word = word_index(span, 0);
        if (const Taken t = world.take(users[span], 64, 1, 2); t.bits != 0) world.put(t);
      });
    }
    run.spawn([&] {
      Cursor cursor{.word = word_index(0, 0)};
      found = world.take(cursor, 64, 1, 1);
      SIM_CHECK(found.bits == 0 || pool::span_of(found.word) == 1);
    });
    run.check([&] { world.check_at_rest({found}); });
  });
}

// Two threads take all of the same span: at most one has it.
template <class Traits>
Result take_all_against_take_all(Options options) {
  options.name += "take_all/take_all";
  return sim::explore(options, [](sim::Execution& run) {
    World<Traits> world;
    world.free_span_at_first(0);
    Taken kept[2];
    // The pool promises that this needs no lock.
    for (unsigned i = 0; i < 2; ++i) run.spawn([&, i] { kept[i] = world.move_span(0, 2); });
    run.check([&] { world.check_at_rest({kept[0], kept[1]}); });
  });
}

// The purger borrows slots while others take and give.
template <class Traits>
Result purge_against_refill_and_drain(Options options) {
  options.name += "purge/refill/drain";
  return sim::explore(options, [](sim::Execution& run) {
    World<Traits> world;
    world.free_at_first(word_index(0, 0), 3);
    const Held held = world.held_at_first({{word_index(0, 0), 4}}, 0);
    Taken found;
    run.spawn([&] { world.put(held[0]); });
    run.spawn([&] {
      Cursor cursor;
      found = world.take(cursor, 64);
    });
    run.spawn([&] { (void)world.borrow({word_index(0, 0), 3}); });
    run.check([&] { world.check_at_rest({found}); });
  });
}

// Three threads, each taking and giving back, over two words.
template <class Traits>
Result three_threads(Options options) {
  options.name += "three";
  return sim::explore(options, [](sim::Execution& run) {
    World<Traits> world;
    world.free_at_first(word_index(0, 0), 1);
    const Held held = world.held_at_first({{word_index(1, 1), 1}}, 0);
    Taken found[3];
    run.spawn([&] { world.put(held[0]); });
    for (unsigned i = 1; i < 3; ++i) {
      run.spawn([&, i] {
        Cursor cursor;
        found[i] = world.take(cursor, 64);
        if (i == 1 && found[i].bits != 0) {
          world.put(found[i]);
          found[i] = {};
        }
      });
    }
    run.check([&] { world.check_at_rest({found[0], found[1], found[2]}); });
  });
}

// Everything at once, for random schedules.
template <class Traits>
Result everything(Options options) {
  options.name += "everything";
  return sim::explore(options, [](sim::Execution& run) {
    World<Traits> world;
    world.free_span_at_first(0);
    world.free_at_first(word_index(1, 0), 7);
    const Held held = world.held_at_first({{word_index(1, 1), 3}}, 0);
    Taken kept[4];
    run.spawn([&] {
      world.put(held[0]);
      Cursor cursor{.word = word_index(1, 0)};
      for (int i = 0; i < 3; ++i) {
        if (const Taken t = world.take(cursor, 64); t.bits != 0) world.put(t);
      }
    });
    run.spawn([&] {
      Cursor cursor;
      for (int i = 0; i < 3; ++i) {
        if (const Taken t = world.take(cursor, 1); t.bits != 0) world.put(t);
      }
    });
    run.spawn([&] {
      kept[2] = world.move_span(0, 2);
      if (kept[2].bits != 0) {
        world.put(kept[2]);
        kept[2] = world.move_span(0, 1);
      }
    });
    run.spawn([&] {
      Cursor cursor;
      (void)world.borrow({word_index(1, 0), 3});
      kept[3] = world.take(cursor, 2, 2);
    });
    run.check([&] { world.check_at_rest({kept[0], kept[1], kept[2], kept[3]}); });
  });
}

// ---- the shipped algorithm

// Two threads, as good as all interleavings; three threads; mutants, which die early.
Options deep() { return {.name = "word_pool/", .preemptions = 5, .stale = 2}; }
Options three() { return {.name = "word_pool/", .preemptions = 4, .stale = 2}; }
Options shallow() { return {.name = "word_pool/mutant/", .preemptions = 4, .stale = 2, .print = false}; }

TEST(WordPool_Model, RefillAgainstDrain_NothingTwiceNothingLost) { sim::expect_ok(refill_against_drain<Faithful>(deep())); }
TEST(WordPool_Model, DrainAgainstStaleSummaries_NothingLost) {
  sim::expect_ok(drain_against_stale_summaries<Faithful>(deep()));
}
TEST(WordPool_Model, DrainAgainstSearchInTwoLevels_NothingLost) {
  sim::expect_ok(drain_against_search_in_two_levels<Faithful>(deep()));
}
TEST(WordPool_Model, PartsAgainstWholes_NothingTwiceNothingLost) { sim::expect_ok(parts_against_wholes<Faithful>(deep())); }
TEST(WordPool_Model, DrainAgainstTakeAll_AllOrNothing) { sim::expect_ok(drain_against_take_all<Faithful>(deep())); }
TEST(WordPool_Model, RefillAgainstMove_NothingTwiceNothingLost) {
  sim::expect_ok(refill_against_move<Faithful>(deep(), false));
}
TEST(WordPool_Model, RefillAgainstTwoMoves_NothingTwiceNothingLost) {
  sim::expect_ok(refill_against_two_moves<Faithful>(deep()));
}
TEST(WordPool_Model, LateAnnouncement_NothingLost) { sim::expect_ok(late_announcement<Faithful>(deep(), false)); }
TEST(WordPool_Model, LateAnnouncementAgainstSearch_NothingLost) {
  sim::expect_ok(late_announcement<Faithful>(three(), true));
}
TEST(WordPool_Model, RefillsInStripes_NothingTwiceNothingLost) {
  for (const unsigned max_foreign_spans : {0U, 2U}) sim::expect_ok(refills_in_stripes<Faithful>(deep(), max_foreign_spans));
}
TEST(WordPool_Model, TakeOver_OnlyWhatIsNotLeftToItsUser) { sim::expect_ok(take_over<Faithful>(three())); }
TEST(WordPool_Model, TakeAllAgainstTakeAll_AtMostOne) { sim::expect_ok(take_all_against_take_all<Faithful>(deep())); }
TEST(WordPool_Model, RefillsOfBothPoolsAgainstMove_NothingTwiceNothingLost) {
  sim::expect_ok(refill_against_move<Faithful>(three(), true));
}
TEST(WordPool_Model, PurgeAgainstRefillAndDrain_NothingTwiceNothingLost) {
  sim::expect_ok(purge_against_refill_and_drain<Faithful>(three()));
}
TEST(WordPool_Model, DrainAgainstTakeAllAndRefill_AllOrNothing) {
  sim::expect_ok(drain_against_take_all_and_refill<Faithful>(three()));
}
TEST(WordPool_Model, ThreeThreads_NothingTwiceNothingLost) { sim::expect_ok(three_threads<Faithful>(three())); }
TEST(WordPool_Model, EverythingAtOnce_Pct_NothingTwiceNothingLost) {
  Options options = deep();
  options.strategy = sim::Strategy::kPct;
  options.depth = 5;
  options.executions = 100'000;
  const Result result = everything<Faithful>(options);
  EXPECT_TRUE(result.ok()) << result;
}

// ---- mutants

// What the first of the scenarios to notice says; kNone if the mutant survives them all.
template <class Traits>
Failure killed() {
  Options options = shallow();
  for (auto* scenario :
       {&refill_against_drain<Traits>, &drain_against_stale_summaries<Traits>, &drain_against_search_in_two_levels<Traits>,
        &parts_against_wholes<Traits>, &drain_against_take_all<Traits>, &refill_against_two_moves<Traits>,
        &take_all_against_take_all<Traits>}) {
    if (const Result r = scenario(options); !r.ok()) return r.failure;
  }
  options.preemptions = 3;
  for (auto* scenario :
       {&purge_against_refill_and_drain<Traits>, &three_threads<Traits>, &drain_against_take_all_and_refill<Traits>}) {
    if (const Result r = scenario(options); !r.ok()) return r.failure;
  }
  for (const bool searched : {false, true}) {
    if (const Result r = late_announcement<Traits>(options, searched); !r.ok()) return r.failure;
  }
  return refill_against_move<Traits>(options, true).failure;
}

// Each order by itself, one step weaker where there is one.
struct TakeRelaxed : Faithful {
  struct Orders : pool::WordPoolOrders {
    static constexpr auto kTake = std::memory_order_relaxed;
  };
};
struct PutAcqRel : Faithful {
  struct Orders : pool::WordPoolOrders {
    static constexpr auto kPut = std::memory_order_acq_rel;
  };
};
struct PutAcquire : Faithful {
  struct Orders : pool::WordPoolOrders {
    static constexpr auto kPut = std::memory_order_acquire;
  };
};
struct ClearSummaryAcqRel : Faithful {
  struct Orders : pool::WordPoolOrders {
    static constexpr auto kClearSummary = std::memory_order_acq_rel;
  };
};
struct RereadWordAcquire : Faithful {
  struct Orders : pool::WordPoolOrders {
    static constexpr auto kRereadWord = std::memory_order_acquire;
  };
};
struct ReadSummaryAcquire : Faithful {
  struct Orders : pool::WordPoolOrders {
    static constexpr auto kReadSummary = std::memory_order_acquire;
  };
};
struct SetSummaryAcqRel : Faithful {
  struct Orders : pool::WordPoolOrders {
    static constexpr auto kSetSummary = std::memory_order_acq_rel;
  };
};
struct PublishRelaxed : Faithful {
  struct Orders : pool::WordPoolOrders {
    static constexpr auto kPublish = std::memory_order_relaxed;
  };
};

TEST(WordPool_Mutants, TakeRelaxed_Killed) { EXPECT_EQ(killed<TakeRelaxed>(), Failure::kRace); }
TEST(WordPool_Mutants, PutAcqRel_Killed) { EXPECT_EQ(killed<PutAcqRel>(), Failure::kCheck); }
TEST(WordPool_Mutants, PutAcquire_Killed) { EXPECT_EQ(killed<PutAcquire>(), Failure::kRace); }
TEST(WordPool_Mutants, ClearSummaryAcqRel_Killed) { EXPECT_EQ(killed<ClearSummaryAcqRel>(), Failure::kCheck); }
TEST(WordPool_Mutants, RereadWordAcquire_Killed) { EXPECT_EQ(killed<RereadWordAcquire>(), Failure::kCheck); }
TEST(WordPool_Mutants, ReadSummaryAcquire_Killed) { EXPECT_EQ(killed<ReadSummaryAcquire>(), Failure::kCheck); }
TEST(WordPool_Mutants, SetSummaryAcqRel_Killed) { EXPECT_EQ(killed<SetSummaryAcqRel>(), Failure::kCheck); }
TEST(WordPool_Mutants, PublishRelaxed_Killed) { EXPECT_EQ(killed<PublishRelaxed>(), Failure::kRace); }

// Steps left out.
struct OwnerNotVerified : Faithful {
  static constexpr bool kVerifies = false;
};
struct WrongTakeKept : Faithful {
  static constexpr bool kGivesBack = false;
};
struct AnnouncedToFormerPool : Faithful {
  static constexpr bool kAnnouncesToOwner = false;
};
TEST(WordPool_Mutants, AnnouncedToFormerPool_Killed) { EXPECT_EQ(killed<AnnouncedToFormerPool>(), Failure::kCheck); }
TEST(WordPool_Mutants, OwnerNotVerified_Killed) { EXPECT_EQ(killed<OwnerNotVerified>(), Failure::kCheck); }
TEST(WordPool_Mutants, WrongTakeKept_Killed) { EXPECT_EQ(killed<WrongTakeKept>(), Failure::kCheck); }

// Steps done otherwise, by atomics that misbehave.
template <template <class> class Atomic>
struct On : Faithful {
  struct Atomics : SimAtomics {
    template <class T>
    using atomic = Atomic<T>;
  };
};

// The searcher does not look again after it cleared a summary bit. That load alone has this order here.
template <class T>
struct BlindReread : sim::atomic<T> {
  using sim::atomic<T>::atomic;
  T load(std::memory_order order) const noexcept {
    return order == std::memory_order_consume ? T{} : sim::atomic<T>::load(order);
  }
};
struct NothingRestored : On<BlindReread> {
  struct Orders : pool::WordPoolOrders {
    static constexpr auto kRereadWord = std::memory_order_consume;
  };
};
// A claimer does not see the summary bits that late announcements left.
template <class T>
struct BlindPublish : sim::atomic<T> {
  using sim::atomic<T>::atomic;
  T fetch_or(T value, std::memory_order order) noexcept {
    const T old = sim::atomic<T>::fetch_or(value, order);
    return value == 0 ? T{} : old;
  }
};
// A word is taken by a load and a store.
template <class T>
struct TornExchange : sim::atomic<T> {
  using sim::atomic<T>::atomic;
  T exchange(T value, std::memory_order order) noexcept {
    const T old = this->load(order);
    this->store(value, std::memory_order_release);
    return old;
  }
};
// A failed attempt to take all keeps what it got.
template <class T>
struct NoPutBack : sim::atomic<T> {
  using sim::atomic<T>::atomic;
  T fetch_add(T value, std::memory_order order) noexcept {
    return World<On<NoPutBack>>::in_take_all() ? T{1} << 63 : sim::atomic<T>::fetch_add(value, order);
  }
};
// The summaries without seq_cst, in span and tree.
constexpr std::memory_order without_seq_cst(std::memory_order order, std::memory_order instead) {
  return order == std::memory_order_seq_cst ? instead : order;
}
template <class T>
struct NoTotalOrder : sim::atomic<T> {
  using sim::atomic<T>::atomic;
  T load(std::memory_order order) const noexcept {
    return sim::atomic<T>::load(without_seq_cst(order, std::memory_order_acquire));
  }
  T fetch_and(T value, std::memory_order order) noexcept {
    return sim::atomic<T>::fetch_and(value, without_seq_cst(order, std::memory_order_acq_rel));
  }
  T fetch_or(T value, std::memory_order order) noexcept {
    return sim::atomic<T>::fetch_or(value, without_seq_cst(order, std::memory_order_acq_rel));
  }
};
// A part of a word is taken without looking whether the word has changed.
template <class T>
struct BlindPart : sim::atomic<T> {
  using sim::atomic<T>::atomic;
  bool compare_exchange_weak(T&, T desired, std::memory_order success, std::memory_order) noexcept {
    sim::atomic<T>::exchange(desired, success);
    return true;
  }
};

// The summary promises a slot before it is there: a thread that follows it finds nothing and clears the promise.
template <class T>
struct SummaryBeforeWord : sim::atomic<T> {
  using sim::atomic<T>::atomic;
  T fetch_add(T value, std::memory_order order) noexcept {
    const bool announced = this->load(std::memory_order_seq_cst) == 0;
    if (announced) World<On<SummaryBeforeWord>>::announce_word(this);
    const T old = sim::atomic<T>::fetch_add(value, order);
    return announced ? T{1} << 63 : old;  // so that put() does not announce it once more
  }
};

TEST(WordPool_Mutants, NothingRestored_Killed) { EXPECT_EQ(killed<NothingRestored>(), Failure::kCheck); }
TEST(WordPool_Mutants, LateBitsOverlooked_Killed) { EXPECT_EQ(killed<On<BlindPublish>>(), Failure::kCheck); }
TEST(WordPool_Mutants, TornExchange_Killed) { EXPECT_NE(killed<On<TornExchange>>(), Failure::kNone); }
TEST(WordPool_Mutants, TakeAllWithoutPutBack_Killed) { EXPECT_EQ(killed<On<NoPutBack>>(), Failure::kCheck); }
TEST(WordPool_Mutants, SummariesWithoutTotalOrder_Killed) { EXPECT_EQ(killed<On<NoTotalOrder>>(), Failure::kCheck); }
TEST(WordPool_Mutants, SummaryBeforeWord_Killed) { EXPECT_EQ(killed<On<SummaryBeforeWord>>(), Failure::kCheck); }
TEST(WordPool_Mutants, BlindPart_Killed) { EXPECT_NE(killed<On<BlindPart>>(), Failure::kNone); }

}  // namespace
}  // namespace freehold
