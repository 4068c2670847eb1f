// SPDX-License-Identifier: MIT
// alloc::Arena on the simulated machine, with spans of two pages: claim against claim, drain against the claim of another
// class that needs the span, trim against refill and drain, runs against spans.
// Oracle: the stamps of tiny_arena.hpp; at rest the arena's invariants hold, no slot and no page is lost, and after
// everything is freed a trim gives every span back.
#include <gtest/gtest.h>

#include "tests/model/arena_world.hpp"
#include "tests/model/mutants.hpp"
#include "tests/model/scenarios.hpp"

namespace freehold {
namespace {

using model::ArenaWorld;
using model::Crowded;
using model::Faithful;
using model::g_huge_pages;
using model::kChunk;
using model::kNoSpan;
using model::Slots;
using model::SpanIndex;
using model::TwoWords;
using sim::Failure;
using sim::within;

// ---- scenarios

// Two threads need a first span at the same time.
template <class Traits, unsigned kFirst, unsigned kSecond>
void claim_against_claim(sim::Execution& run) {
  ArenaWorld<Traits> world;
  Slots held[2];
  for (unsigned i = 0; i < 2; ++i) {
    run.spawn([&, i] { held[i] = world.allocate(i == 0 ? kFirst : kSecond); });
  }
  run.check([&] {
    SIM_CHECK(held[0] && held[1]);
    world.check_at_rest({held[0], held[1]}, {0, 1});
  });
}

// Two threads need the one span that can be taken from class 1.
template <class Traits>
void claim_against_claim_of_the_last(sim::Execution& run) {
  ArenaWorld<Traits> world;
  Crowded<Traits> crowd(world);
  crowd.release(2), crowd.release(3);
  Slots held[2];
  for (unsigned i = 0; i < 2; ++i) run.spawn([&, i] { held[i] = world.allocate(2); });
  run.check([&] {
    SIM_CHECK(!!held[0] != !!held[1]);
    crowd.release_all();
    world.check_at_rest({held[0], held[1]}, {0, 1});
  });
}

// The last slot of a span comes back while a claim of another class needs that span, and a refill of the slot's class wants
// it.
template <class Traits, bool kRefill>
void drain_against_claim(sim::Execution& run) {
  ArenaWorld<Traits> world;
  Crowded<Traits> crowd(world);
  crowd.release(2);
  const Slots last = crowd.slots[3];
  crowd.slots[3] = {};
  world.free(last, 6);
  const Slots mine = world.allocate(1, 0);  // slot 2 or 3 of span 1, now thread 0's
  Slots held[3];
  run.spawn([&] { world.free(mine); });
  run.spawn([&] {
    held[1] = world.allocate(2);
    if (held[1]) world.free(std::exchange(held[1], {}));
  });
  if (kRefill) run.spawn([&] { held[2] = world.allocate(1); });
  run.check([&] {
    crowd.release_all();
    world.check_at_rest({held[1], held[2]}, {1, 2});
  });
}

// A wholly free span: one wants a slot of its class, one the span for another class, which then gives it back at once.
template <class Traits, bool kTrim>
void refill_against_claim(sim::Execution& run) {
  ArenaWorld<Traits> world;
  Crowded<Traits> crowd(world);
  crowd.release(2), crowd.release(3);
  run.spawn([&] {
    if (const Slots s = world.allocate(1)) world.free(s);
  });
  run.spawn([&] {
    if (const Slots s = world.allocate(2)) world.free(s);
  });
  if (kTrim) run.spawn([&] { world.trim(); });
  run.check([&] {
    crowd.release_all();
    world.check_at_rest({}, {});
  });
}

// A span changes its class in one thread while another takes slots of the new class: it must see all that happened to the
// span under the old one.
template <class Traits>
void change_of_class_against_refill(sim::Execution& run) {
  ArenaWorld<Traits> world;
  const Slots old = world.allocate(2, 0);
  Slots held[2];
  run.spawn([&] {
    world.free(old);
    held[0] = world.allocate(1);
  });
  run.spawn([&] {
    held[1] = world.allocate(1);
    world.free(std::exchange(held[1], {}));
    held[1] = world.allocate(2);
  });
  run.check([&] { world.check_at_rest({held[0], held[1]}, {0, 1}); });
}

// Trim takes back spans and single pages while another thread takes and gives slots of them.
template <class Traits>
void trim_against_refill_and_drain(sim::Execution& run) {
  ArenaWorld<Traits> world;
  const Slots pinned = world.allocate(1, 1);  // pins span 0, whose other page is free
  world.free(world.allocate(2, 1), 1);        // span 1 is wholly free
  Slots held;
  run.spawn([&] { world.trim(); });
  run.spawn([&] {
    held = world.allocate(1);
    world.free(pinned);
  });
  run.check([&] { world.check_at_rest({held}, {1}); });
}

// The purge that slow paths run now and then, against a claim and a drain.
template <class Traits>
void tick_against_claim_and_drain(sim::Execution& run) {
  ArenaWorld<Traits> world;
  const Slots one = world.allocate(2, 2);
  world.free(world.allocate(1, 1), 1);
  Slots held;
  run.spawn([&] { world.tick(2000); });
  run.spawn([&] { held = world.allocate(2); });
  run.spawn([&] { world.free(one); });
  run.check([&] { world.check_at_rest({held}, {1}); });
}

// The last slots of two words of a span come back at the same time: one thread must notice that the span is free, and of
// a thread that looks in between, that it is not.
template <class Traits, bool kTick>
void drain_against_drain(sim::Execution& run) {
  ArenaWorld<Traits, TwoWords> world;
  const Slots low = world.allocate(1, 0, 64);  // all of word 0
  Slots high = world.allocate(1, 1);           // one slot of word 1
  SIM_CHECK(pool::word_in_span(low.taken.word) == 0 && pool::word_in_span(high.taken.word) == 1);
  run.spawn([&] { world.free(low); });
  run.spawn([&] { world.free(high); });
  if (kTick) run.spawn([&] { world.tick(2000); });
  run.check([&] { world.check_at_rest({}, {}); });
}

// Class 3 lives among runs: its spans become parts of runs, and parts of runs its spans.
template <class Traits>
void run_against_claim(sim::Execution& run) {
  ArenaWorld<Traits> world;
  world.free(world.allocate(3, 1), 1);
  const SpanIndex first = world.allocate_run(2, 0);
  Slots held;
  run.spawn([&] {
    world.free_run(first, 2, 0);
    const SpanIndex all = world.allocate_run(kChunk, 0);
    world.free_run(all, kChunk, 0);
  });
  run.spawn([&] {
    if (const Slots s = world.allocate(3)) world.free(s);
    held = world.allocate(3);
  });
  run.check([&] { world.check_at_rest({held}, {1}); });
}

// Two threads use runs in one chunk whose pages go back: what one frees the other may take at once, zeroed or as it was
// left, and neither gets a span that the purger has in hand.
template <class Traits, bool kTrim>
void run_against_run(sim::Execution& run) {
  ArenaWorld<Traits> world;
  SpanIndex firsts[2] = {world.allocate_run(2, 0), world.allocate_run(2, 1)};
  const SpanIndex rest = world.allocate_run(kChunk, 6);  // spans of the other kind: nothing is left
  SIM_CHECK(firsts[1] != kNoSpan && rest != kNoSpan);
  for (unsigned i = 0; i < 2; ++i)
    run.spawn([&, i] {
      world.free_run(firsts[i], 2, i);
      firsts[i] = world.allocate_run(2, i);
      SIM_CHECK(kTrim || firsts[i] != kNoSpan);
    });
  if (kTrim) run.spawn([&] { world.trim(); });
  run.check([&] {
    for (unsigned i = 0; i < 2; ++i) world.free_run(firsts[i], 2, i);
    world.free_run(rest, kChunk, 6);
    world.check_at_rest({}, {});
  });
}

// A chunk becomes wholly free while a mapping is refused: it is unmapped, or taken before, and comes again when it is
// needed.
template <class Traits, bool kTrim>
void unmap_against_run(sim::Execution& run) {
  ArenaWorld<Traits> world;
  SpanIndex first = world.allocate_run(2, 0);
  const SpanIndex rest = world.allocate_run(kChunk, 6);
  run.spawn([&] {
    world.free_run(first, 2, 0);
    first = world.allocate_run(2, 0);
  });
  run.spawn([&] { (void)world.unmap_a_chunk(); });
  if (kTrim) run.spawn([&] { world.trim(); });
  run.check([&] {
    SIM_CHECK(kTrim || first != kNoSpan);
    world.free_run(first, 2, 0);
    world.free_run(rest, kChunk, 6);
    SIM_CHECK(world.unmap_a_chunk());
    world.check_at_rest({}, {});
  });
}

// All memory is in use. One thread frees a run while another looks for one: whether it finds it or not, the trees must lead
// to what is free in the end.
template <class Traits>
void free_run_against_search(sim::Execution& run) {
  ArenaWorld<Traits> world;
  const SpanIndex first = world.allocate_run(2, 0), second = world.allocate_run(2, 6);
  const SpanIndex rest = world.allocate_run(kChunk, 6);
  SpanIndex found = kNoSpan;
  run.spawn([&] { world.free_run(first, 2, 0); });
  run.spawn([&] { found = world.allocate_run(1, 1); });
  run.check([&] {
    SIM_CHECK(world.holds());
    world.free_run(found, 1, 1);
    world.free_run(second, 2, 6);
    world.free_run(rest, kChunk, 6);
    world.check_at_rest({}, {});
  });
}

// A run grows into what another thread frees behind it, shrinks, and a third thread takes what it leaves.
template <class Traits>
void resize_against_run(sim::Execution& run) {
  ArenaWorld<Traits> world;
  const SpanIndex mine = world.allocate_run(1, 0), behind = world.allocate_run(1, 1);
  SIM_CHECK(behind == mine + 1);
  SpanIndex taken = kNoSpan;
  bool grown = false;
  run.spawn([&] {
    grown = world.resize_run(mine, 1, 2, 0);
    if (grown) SIM_CHECK(world.resize_run(mine, 2, 1, 0));
  });
  run.spawn([&] {
    world.free_run(behind, 1, 1);
    taken = world.allocate_run(2, 1);
  });
  run.check([&] {
    SIM_CHECK(taken != kNoSpan);
    world.free_run(mine, 1, 0);
    world.free_run(taken, 2, 1);
    world.check_at_rest({}, {});
  });
}

// Everything at once, for random schedules.
template <class Traits>
void everything(sim::Execution& run) {
  ArenaWorld<Traits> world;
  Crowded<Traits> crowd(world);
  crowd.release(2), crowd.release(3), crowd.release(4);
  const Slots last = std::exchange(crowd.slots[5], {});
  world.free(last, 6);
  const Slots mine = world.allocate(1, 0);
  Slots held[4];
  run.spawn([&] {
    world.free(mine);
    for (int i = 0; i < 2; ++i) world.free(world.allocate(1));
  });
  run.spawn([&] {
    for (int i = 0; i < 2; ++i) world.free(world.allocate(2));
    held[1] = world.allocate(2);
  });
  run.spawn([&] {
    for (int i = 0; i < 2; ++i) world.free(world.allocate(1));
    held[2] = world.allocate(1);
  });
  run.spawn([&] {
    world.trim();
    world.tick(2000);
    held[3] = world.allocate(2);
  });
  run.check([&] {
    crowd.release_all();
    world.check_at_rest({held[1], held[2], held[3]}, {1, 2, 3});
  });
}

// ---- the shipped algorithm; the mutex has its own model, so here it never spins

template <class Traits>
sim::Scenarios scenarios() {
  return {{within("claim1/claim1", 4, 2), claim_against_claim<Traits, 1, 1>},
          {within("claim1/claim2", 4, 2), claim_against_claim<Traits, 1, 2>},
          {within("claim2/claim2", 4, 2), claim_against_claim<Traits, 2, 2>},
          {within("claim3/claim3", 4, 2), claim_against_claim<Traits, 3, 3>},
          {within("claim1/claim3", 4, 2), claim_against_claim<Traits, 1, 3>},
          {within("last/last", 6, 2), claim_against_claim_of_the_last<Traits>},
          {within("trim/refill/drain", 6, 2), trim_against_refill_and_drain<Traits>},
          {within("change/refill", 3, 1), change_of_class_against_refill<Traits>},
          {within("run/claim", 6, 2), run_against_claim<Traits>},
          {within("tick/claim/drain", 4, 2), tick_against_claim_and_drain<Traits>},
          {within("free/search", 4, 2), free_run_against_search<Traits>},
          {within("resize/run", 4, 2), resize_against_run<Traits>},
          {within("run/run", 4, 2), run_against_run<Traits, false>},
          {within("unmap/run", 4, 2), unmap_against_run<Traits, false>},
          {within("unmap/run/trim", 2, 1), unmap_against_run<Traits, true>},
          {within("drain/claim", 6, 2), drain_against_claim<Traits, false>},
          {within("refill/claim", 6, 2), refill_against_claim<Traits, false>},
          {within("drain/drain", 6, 2), drain_against_drain<Traits, false>},
          {within("run/run/trim", 2, 1), run_against_run<Traits, true>},
          {within("drain/claim/refill", 3, 2), drain_against_claim<Traits, true>},
          {within("refill/claim/trim", 2, 1), refill_against_claim<Traits, true>},
          {within("drain/drain/tick", 4, 2), drain_against_drain<Traits, true>}};
}

TEST(Arena_Model, EveryScenario_NothingTwiceNothingLost) { sim::expect_all_ok("arena", scenarios<Faithful>()); }
TEST(Arena_Model, SomeScenarios_InChunksOfAnotherGroupOfCpus_NothingTwiceNothingLost) {
  model::g_groups = 2;
  sim::expect_all_ok("arena of groups", {{within("tick/claim/drain", 4, 2), tick_against_claim_and_drain<Faithful>},
                                         {within("free/search", 4, 2), free_run_against_search<Faithful>},
                                         {within("run/run", 2, 1), run_against_run<Faithful, false>}});
  model::g_groups = 1;
}
TEST(Arena_Model, RunAgainstClaimThatReclaims_NothingTwiceNothingLost) {
  sim::expect_all_ok("arena", {{within("reclaiming", 3, 2), run_against_claim<model::Reclaiming>}});
}
// Wholly free spans wait for the threads of their node, and go to others when memory is short.
template <class Traits, unsigned kWho>
void claim_of_the_last(sim::Execution& run) {
  ArenaWorld<Traits> world;
  Crowded<Traits> crowd(world);
  crowd.release(2), crowd.release(3);
  Slots held;
  for (unsigned i = 0; i < 2; ++i)
    run.spawn([&, i] {
      if (i == kWho) held = world.allocate(2);
    });
  run.check([&] {
    SIM_CHECK(held);
    crowd.release_all();
    world.check_at_rest({held}, {kWho});
  });
}
template <class Traits>
sim::Scenarios scenarios_of_nodes() {
  return {{within("nodes/last of 0", 2, 2), claim_of_the_last<Traits, 0>},
          {within("nodes/last of 1", 2, 2), claim_of_the_last<Traits, 1>},
          {within("nodes/last/last", 2, 2), claim_against_claim_of_the_last<Traits>},
          {within("nodes/drain/claim", 3, 2), drain_against_claim<Traits, false>},
          {within("nodes/refill/claim", 2, 2), refill_against_claim<Traits, false>},
          {within("nodes/drain/drain/tick", 3, 2), drain_against_drain<Traits, true>}};
}
TEST(Arena_Model, TwoNodes_NothingTwiceNothingLost) { sim::expect_all_ok("arena", scenarios_of_nodes<model::TwoNodes>()); }
TEST(Arena_Model, EverythingAtOnce_Pct_NothingTwiceNothingLost) {
  sim::expect_all_ok("arena", {{sim::at_random("everything", 2, 5, 50'000), everything<Faithful>}});
}

// ---- mutants

template <class Traits>
Failure killed() {
  return sim::first_failure("arena", scenarios<Traits>(), 3, 2);
}

FREEHOLD_WEAKER(TakeRelaxed, pool::WordPoolOrders, kTake, relaxed);
FREEHOLD_WEAKER(PutAcquire, pool::WordPoolOrders, kPut, acquire);
FREEHOLD_WEAKER(PublishRelaxed, pool::WordPoolOrders, kPublish, relaxed);
FREEHOLD_WEAKER(LookFullAcquire, pool::WordPoolOrders, kLookFull, acquire);
FREEHOLD_WEAKER(TakeSpansRelaxed, alloc::ChunkPoolOrders, kTake, relaxed);
FREEHOLD_WEAKER(GiveSpansAcquire, alloc::ChunkPoolOrders, kGive, acquire);
FREEHOLD_WEAKER(GiveSpansRelease, alloc::ChunkPoolOrders, kGive, release);
FREEHOLD_WEAKER(RereadSpansAcquire, alloc::ChunkPoolOrders, kReread, acquire);
FREEHOLD_WEAKER(SetClassRelease, alloc::ArenaOrders, kSetClass, release);
FREEHOLD_WEAKER(AskClassAcquire, alloc::ArenaOrders, kAskClass, acquire);
template <class O>
struct Chunks : Faithful {
  using ChunkOrders = O;
};
template <class O>
struct Spans : Faithful {
  using SpanOrders = O;
};

TEST(Arena_Mutants, EachOrderAlone_IsNoticed) {
  EXPECT_EQ(killed<Spans<SetClassRelease>>(), Failure::kCheck);
  EXPECT_EQ(killed<Spans<AskClassAcquire>>(), Failure::kCheck);
  EXPECT_EQ(killed<Chunks<TakeSpansRelaxed>>(), Failure::kRace);
  EXPECT_EQ(killed<Chunks<GiveSpansAcquire>>(), Failure::kRace);
  EXPECT_NE(killed<Chunks<GiveSpansRelease>>(), Failure::kNone);
  EXPECT_NE(killed<Chunks<RereadSpansAcquire>>(), Failure::kNone);
  EXPECT_NE(killed<model::Ordered<TakeRelaxed>>(), Failure::kNone);
  EXPECT_EQ(killed<model::Ordered<PutAcquire>>(), Failure::kRace);
  EXPECT_NE(killed<model::Ordered<PublishRelaxed>>(), Failure::kNone);
  EXPECT_EQ(killed<model::Ordered<LookFullAcquire>>(), Failure::kCheck);
}

// The reclaimer takes a word by a load and a store.
template <class T>
struct TornExchange : sim::atomic<T> {
  using sim::atomic<T>::atomic;
  T exchange(T value, std::memory_order order) noexcept {
    if constexpr (sizeof(T) < 8) return sim::atomic<T>::exchange(value, order);
    const T old = this->load(order);
    this->store(value, std::memory_order_release);
    return old;
  }
};
// The purger does not take the slots of the pages that it purges.
template <class T>
struct NothingBorrowed : sim::atomic<T> {
  using sim::atomic<T>::atomic;
  bool compare_exchange_weak(T& expected, T desired, std::memory_order success, std::memory_order failure) noexcept {
    return ArenaWorld<model::On<NothingBorrowed>>::trims() ||
           sim::atomic<T>::compare_exchange_weak(expected, desired, success, failure);
  }
  T fetch_add(T value, std::memory_order order) noexcept {
    return ArenaWorld<model::On<NothingBorrowed>>::trims() ? T{1} << (8 * sizeof(T) - 1)
                                                           : sim::atomic<T>::fetch_add(value, order);
  }
};
// The purger keeps what it borrowed, and a failed reclaim what it took apart.
template <class T>
struct NothingPutBack : sim::atomic<T> {
  using sim::atomic<T>::atomic;
  T fetch_add(T value, std::memory_order order) noexcept {
    return ArenaWorld<model::On<NothingPutBack>>::trims() ? T{1} << (8 * sizeof(T) - 1)
                                                          : sim::atomic<T>::fetch_add(value, order);
  }
};
// A reclaimed span keeps its class until it gets another one.
template <class T>
struct OwnerKept : sim::atomic<T> {
  using sim::atomic<T>::atomic;
  void store(T value, std::memory_order order) noexcept {
    if (!std::is_same_v<T, std::uint8_t> || value != T{}) sim::atomic<T>::store(value, order);
  }
};
// Seen where two threads grow the arena, which asks more with huge pages.
TEST(Arena_Mutants, NoLock_IsNoticed) {
  g_huge_pages = alloc::HugePages::kAuto;
  EXPECT_NE(killed<model::On<model::Open>>(), Failure::kNone);
  g_huge_pages = alloc::HugePages::kOff;
}
TEST(Arena_Mutants, EachStepDoneOtherwise_IsNoticed) {
  EXPECT_NE(killed<model::On<TornExchange>>(), Failure::kNone);
  EXPECT_NE(killed<model::On<NothingBorrowed>>(), Failure::kNone);
  EXPECT_EQ(killed<model::On<NothingPutBack>>(), Failure::kCheck);
  EXPECT_EQ(killed<model::On<OwnerKept>>(), Failure::kCheck);
}

}  // namespace
}  // namespace freehold
