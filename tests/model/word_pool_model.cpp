// SPDX-License-Identifier: MIT
// pool::WordPool and SummaryTree on the simulated machine: refill against drain, against taking all of a span for another
// pool, against the purger, in two and three threads; then mutants of the orders and of each step that holds the protocol
// together.
// Oracle: word_pool_world.hpp's stamps.
#include <gtest/gtest.h>

#include "tests/model/mutants.hpp"
#include "tests/model/scenarios.hpp"
#include "tests/model/word_pool_world.hpp"

namespace freehold::model {
namespace {

using sim::Failure;
using Faithful = FaithfulWordPool;

// Each scenario is a template over the traits, so that the mutants run it, too.
template <class Traits>
struct Scenarios {
  using World = WordPoolWorld<Traits>;

  // One slot goes round: the thread that finds it gives it back.
  static void refill_against_drain(sim::Execution& run) {
    World world;
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
  }

  // One thread gives back to two words of an empty span, whose summaries still promise slots; another searches.
  static void drain_against_stale_summaries(sim::Execution& run) {
    World world;
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
  }

  // The same across the levels of the summary tree: the spans lie under different words of level 0.
  static void drain_against_search_in_two_levels(sim::Execution& run) {
    World world(kTwoWords, kMaxSpans);
    const Held held = world.held_at_first({{word_index(65, 0), 1}}, 0);
    world.leave_stale_summaries(65);
    Taken found;
    run.spawn([&] { world.put(held[0]); });
    run.spawn([&] {
      Cursor cursor;
      found = world.take(cursor, 64);
    });
    run.check([&] { world.check_at_rest({found}); });
  }

  // Single slots by compare-exchange, whole words by exchange, and a drain into the same word.
  static void parts_against_wholes(sim::Execution& run) {
    World world;
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
  }

  // The last slot of a span comes back while another thread tries to take all of the span for another pool.
  static void drain_against_take_all(sim::Execution& run) {
    World world;
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
  }

  // A wholly free span moves from pool 1 to pool 2 while a searcher of pool 1 and one of pool 2 pass through.
  static void refills_against_move(sim::Execution& run) {
    World world;
    world.free_span_at_first(0);
    Taken kept, found[2];
    run.spawn([&] { kept = world.move_span(0, 2); });
    for (unsigned i = 0; i < 2; ++i) {
      run.spawn([&, i] {
        Cursor cursor;
        found[i] = world.take(cursor, 64, 1 + i);
      });
    }
    run.check([&] { world.check_at_rest({kept, found[0], found[1]}); });
  }

  // There and back: the span changes hands twice, so what a slow searcher knows is twice out of date.
  static void refill_against_two_moves(sim::Execution& run) {
    World world;
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
  }

  // The last slot comes back, a second thread takes all of the span, a third searches: what a failed attempt took apart must
  // come back whole.
  static void drain_against_take_all_and_refill(sim::Execution& run) {
    World world;
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
  }

  // A span is filled by its last put, taken away before that put has announced it, handed out whole by its new pool, and
  // filled again: the late announcement may not make the new pool's put believe that the span is in its tree.
  template <bool kSearched>
  static void late_announcement(sim::Execution& run) {
    World world(kOneWord);
    const Held held = world.held_at_first({{word_index(0, 0), 3}}, 0);
    run.spawn([&] { world.put(held[0]); });
    run.spawn([&] {
      const Taken all = world.move_span(0, 2, kOneWord);
      if (all.bits != 0) world.put(all);
    });
    if (kSearched) {
      run.spawn([&] {
        Cursor cursor;
        if (const Taken t = world.take(cursor, 64, 2); t.bits != 0) world.put(t);
      });
    }
    run.check([&] { world.check_at_rest({}); });
  }

  // Threads that prefer their own spans, in a tree with two stripes: spans move from stripe to stripe with their users, and
  // may not fall between.
  template <unsigned kMaxForeignSpans>
  static void refills_in_stripes(sim::Execution& run) {
    World world(kOneWord, 2, kStripes);
    world.free_at_first(word_index(0, 0), 3);
    const Held held = world.held_at_first({{word_index(1, 0), 1}}, 0);
    Taken found[2];
    run.spawn([&] {
      Cursor cursor;
      world.put(held[0]);
      found[0] = world.take(cursor, 64, 1, kMaxForeignSpans);
    });
    run.spawn([&] {
      Cursor cursor;
      const Taken t = world.take(cursor, 64, 1, kMaxForeignSpans);
      if (t.bits != 0) world.put(t);
      found[1] = world.take(cursor, 64, 1, kMaxForeignSpans);
    });
    run.check([&] { world.check_at_rest({found[0], found[1]}); });
  }

  // A thread takes over a span that another one left, while that comes back, and none of the spans that are left to
  // thread 1.
  static void take_over(sim::Execution& run) {
    World world(kOneWord);
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
  }

  // Two threads take all of the same span: at most one has it.
  static void take_all_against_take_all(sim::Execution& run) {
    World world;
    world.free_span_at_first(0);
    Taken kept[2];
    // The pool promises that this needs no lock.
    for (unsigned i = 0; i < 2; ++i) run.spawn([&, i] { kept[i] = world.move_span(0, 2); });
    run.check([&] { world.check_at_rest({kept[0], kept[1]}); });
  }

  // The purger borrows slots while others take and give.
  static void purge_against_refill_and_drain(sim::Execution& run) {
    World world;
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
  }

  // Three threads, each taking and giving back, over two words.
  static void three_threads(sim::Execution& run) {
    World world;
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
  }

  // Everything at once, for random schedules.
  static void everything(sim::Execution& run) {
    World world;
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
  }

  // With as many preemptions as are as good as all interleavings of two threads, of three fewer.
  inline static const sim::Scenarios kAll = {
      {{.name = "refill/drain", .preemptions = 5, .stale = 2}, refill_against_drain},
      {{.name = "drain/stale", .preemptions = 5, .stale = 2}, drain_against_stale_summaries},
      {{.name = "drain/levels", .preemptions = 5, .stale = 2}, drain_against_search_in_two_levels},
      {{.name = "part/whole", .preemptions = 5, .stale = 2}, parts_against_wholes},
      {{.name = "drain/take_all", .preemptions = 5, .stale = 2}, drain_against_take_all},
      {{.name = "refill/moves", .preemptions = 5, .stale = 2}, refill_against_two_moves},
      {{.name = "take_all/take_all", .preemptions = 5, .stale = 2}, take_all_against_take_all},
      {{.name = "purge/refill/drain", .preemptions = 4, .stale = 2}, purge_against_refill_and_drain},
      {{.name = "three", .preemptions = 4, .stale = 2}, three_threads},
      {{.name = "drain/take_all/refill", .preemptions = 4, .stale = 2}, drain_against_take_all_and_refill},
      {{.name = "late", .preemptions = 5, .stale = 2}, late_announcement<false>},
      {{.name = "late/search", .preemptions = 4, .stale = 2}, late_announcement<true>},
      {{.name = "refill/move/refill", .preemptions = 4, .stale = 2}, refills_against_move},
      {{.name = "stripes0", .preemptions = 5, .stale = 2}, refills_in_stripes<0>},
      {{.name = "stripes2", .preemptions = 5, .stale = 2}, refills_in_stripes<2>},
      {{.name = "take_over", .preemptions = 4, .stale = 2}, take_over},
  };
};

// ---- the shipped algorithm

TEST(WordPool_Model, EveryScenario_NothingTwiceNothingLost) { sim::expect_all_ok("word_pool", Scenarios<Faithful>::kAll); }
TEST(WordPool_Model, EverythingAtOnce_Pct_NothingTwiceNothingLost) {
  sim::expect_all_ok(
      "word_pool", {{{.name = "everything", .strategy = sim::Strategy::kPct, .stale = 2, .depth = 5, .executions = 100'000},
                     Scenarios<Faithful>::everything}});
}

// ---- mutants

template <class Traits>
Failure killed() {
  return sim::first_failure("word_pool", Scenarios<Traits>::kAll, 3);
}

// Each order by itself, one step weaker where there is one.
template <class O>
struct Ordered : Faithful {
  using Orders = O;
};
FREEHOLD_WEAKER(TakeRelaxed, pool::WordPoolOrders, kTake, relaxed);
FREEHOLD_WEAKER(PutAcqRel, pool::WordPoolOrders, kPut, acq_rel);
FREEHOLD_WEAKER(PutAcquire, pool::WordPoolOrders, kPut, acquire);
FREEHOLD_WEAKER(ClearSummaryAcqRel, pool::WordPoolOrders, kClearSummary, acq_rel);
FREEHOLD_WEAKER(RereadWordAcquire, pool::WordPoolOrders, kRereadWord, acquire);
FREEHOLD_WEAKER(ReadSummaryAcquire, pool::WordPoolOrders, kReadSummary, acquire);
FREEHOLD_WEAKER(SetSummaryAcqRel, pool::WordPoolOrders, kSetSummary, acq_rel);
FREEHOLD_WEAKER(PublishRelaxed, pool::WordPoolOrders, kPublish, relaxed);

TEST(WordPool_Mutants, EachOrderAlone_IsNoticed) {
  EXPECT_EQ(killed<Ordered<TakeRelaxed>>(), Failure::kRace);
  EXPECT_EQ(killed<Ordered<PutAcqRel>>(), Failure::kCheck);
  EXPECT_EQ(killed<Ordered<PutAcquire>>(), Failure::kRace);
  EXPECT_EQ(killed<Ordered<ClearSummaryAcqRel>>(), Failure::kCheck);
  EXPECT_EQ(killed<Ordered<RereadWordAcquire>>(), Failure::kCheck);
  EXPECT_EQ(killed<Ordered<ReadSummaryAcquire>>(), Failure::kCheck);
  EXPECT_EQ(killed<Ordered<SetSummaryAcqRel>>(), Failure::kCheck);
  EXPECT_EQ(killed<Ordered<PublishRelaxed>>(), Failure::kRace);
}

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
TEST(WordPool_Mutants, EachStepLeftOut_IsNoticed) {
  EXPECT_EQ(killed<AnnouncedToFormerPool>(), Failure::kCheck);
  EXPECT_EQ(killed<OwnerNotVerified>(), Failure::kCheck);
  EXPECT_EQ(killed<WrongTakeKept>(), Failure::kCheck);
}

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
using TornExchange = model::Torn<T, model::kExchange>;
// A failed attempt to take all keeps what it got.
template <class T>
struct NoPutBack : sim::atomic<T> {
  using sim::atomic<T>::atomic;
  T fetch_add(T value, std::memory_order order) noexcept {
    return WordPoolWorld<On<NoPutBack>>::in_take_all() ? T{1} << 63 : sim::atomic<T>::fetch_add(value, order);
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
    if (announced) WordPoolWorld<On<SummaryBeforeWord>>::announce_word(this);
    const T old = sim::atomic<T>::fetch_add(value, order);
    return announced ? T{1} << 63 : old;  // so that put() does not announce it once more
  }
};

TEST(WordPool_Mutants, EachStepDoneOtherwise_IsNoticed) {
  EXPECT_EQ(killed<NothingRestored>(), Failure::kCheck);
  EXPECT_EQ(killed<On<BlindPublish>>(), Failure::kCheck);
  EXPECT_NE(killed<On<TornExchange>>(), Failure::kNone);
  EXPECT_EQ(killed<On<NoPutBack>>(), Failure::kCheck);
  EXPECT_EQ(killed<On<NoTotalOrder>>(), Failure::kCheck);
  EXPECT_EQ(killed<On<SummaryBeforeWord>>(), Failure::kCheck);
  EXPECT_NE(killed<On<BlindPart>>(), Failure::kNone);
}

}  // namespace
}  // namespace freehold::model
