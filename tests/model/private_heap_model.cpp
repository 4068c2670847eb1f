// SPDX-License-Identifier: MIT
// PrivateHeap on the simulated machine: shards and their owners, the central lists, the end of memory, waiting for room, and
// threads that lock everything. The oracle: a block is data of the thread that has it, so that one handed out twice, or
// without what its former user did being visible, is a data race; the heap's invariants hold at the end; no thread waits for
// ever.
#include <gtest/gtest.h>

#include <array>

#include "freehold/heap/private_heap.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/mutants.hpp"
#include "tests/model/private_heap_world.hpp"
#include "tests/model/scenarios.hpp"
#include "tests/support/inside.hpp"

namespace freehold {
namespace {

using heap::BasicPrivateHeap;
using heap::HeapOptions;
using heap::PrivateHeapOrders;
using heap::WhenLimited;
using model::FewSlabs;
using model::kBytes;
using model::start_afresh;
using model::Tiny;
using model::use;
using sim::Execution;
using sim::Failure;
using sim::SimAtomics;
using sim::within;

template <class A, class Orders = PrivateHeapOrders>
using Heap = BasicPrivateHeap<A, Tiny, FewSlabs, heap::Unregistered, Orders>;

template <class H>
void expect_empty(H& heap) {
  heap::Inside::check_invariants(heap);
  SIM_CHECK(heap.stats().live_objects == 0);
  heap.trim();
  heap::Inside::check_invariants(heap);
  SIM_CHECK(heap.stats().slabs <= 2);  // those with the heap's own data
}

// Two threads that allocate and free, `threads` of them, each `blocks` at a time.
template <class H, unsigned kThreads, unsigned kBlocks, bool kWarm>
void own_blocks(Execution& run) {
  start_afresh();
  H heap;
  if (kWarm) heap.deallocate(heap.allocate(kBytes), kBytes);
  for (unsigned t = 0; t < kThreads; ++t) {
    run.spawn([&heap] {
      void* held[4];
      for (unsigned i = 0; i < kBlocks; ++i) {
        held[i] = heap.allocate(kBytes);
        SIM_CHECK(held[i] != nullptr);
        use(held[i]);
      }
      for (unsigned i = 0; i < kBlocks; ++i) heap.deallocate(held[i], kBytes);
    });
  }
  run.check([&] { expect_empty(heap); });
}

// One thread's blocks are freed by the other.
template <class H>
void handed_over(Execution& run) {
  start_afresh();
  H heap;
  SimAtomics::atomic<void*> box{nullptr};
  run.spawn([&] {
    for (int i = 0; i < 2; ++i) {
      void* const block = heap.allocate(kBytes);
      use(block);
      void* const unclaimed = box.exchange(block, std::memory_order_acq_rel);
      if (unclaimed != nullptr) heap.deallocate(unclaimed, kBytes);
    }
  });
  run.spawn([&] {
    for (int i = 0; i < 2; ++i) {
      void* const block = box.exchange(nullptr, std::memory_order_acq_rel);
      if (block == nullptr) continue;
      use(block);
      heap.deallocate(block);
    }
  });
  run.check([&] {
    if (void* const last = box.load(std::memory_order_relaxed); last != nullptr) heap.deallocate(last, kBytes);
    expect_empty(heap);
  });
}

// Room for three blocks and no more, two of which stay in use; both threads want the third, twice. Who waits gets it in the
// end.
template <class H, WhenLimited kWhen>
void scarce(Execution& run) {
  start_afresh();
  HeapOptions heap_options;
  heap_options.limit_bytes = 512;
  unsigned live = 0;
  {
    H measure(heap_options);
    while (measure.allocate(kBytes) != nullptr) ++live;
  }
  heap_options.when_limited = kWhen;
  H heap(heap_options);
  std::array<void*, 8> kept{};
  for (unsigned i = 0; i < live; ++i) kept[i] = heap.allocate(kBytes);
  heap.deallocate(kept[--live]);
  for (int t = 0; t < 2; ++t) {
    run.spawn([&heap] {
      void* const first = heap.allocate(kBytes);
      SIM_CHECK(first != nullptr || kWhen == WhenLimited::kFail);
      if (first == nullptr) return;
      use(first);
      heap.deallocate(first, kBytes);
      void* const second = heap.allocate(kBytes);
      SIM_CHECK(second != nullptr || kWhen == WhenLimited::kFail);
      if (second == nullptr) return;
      use(second);
      heap.deallocate(second);
    });
  }
  run.check([&] {
    heap::Inside::check_invariants(heap);
    SIM_CHECK(heap.stats().live_objects == live);
    void* const freed = heap.allocate(kBytes);  // it is found, wherever it is
    SIM_CHECK(freed != nullptr);
    heap.deallocate(freed, kBytes);
    while (live > 0) heap.deallocate(kept[--live], kBytes);
    expect_empty(heap);
  });
}

// One thread looks at the whole heap, gives pages back, or holds it as before a fork, while the other works: in a shard that
// is there already, or in one that it makes then.
template <class H, bool kShardIsMade>
void looked_at(Execution& run) {
  start_afresh();
  H heap;
  void* const kept = heap.allocate(kBytes);  // in the shard of the first thread that is spawned
  const auto work = [&] {
    void* const block = heap.allocate(kBytes);
    use(block);
    heap.deallocate(block, kBytes);
  };
  const auto look = [&] {
    heap::Inside::lock_for_fork(heap);
    heap::Inside::unlock_after_fork(heap);
    const auto stats = heap.stats();
    SIM_CHECK(stats.live_objects == 1 || stats.live_objects == 2);
    heap.trim();
  };
  if (kShardIsMade) run.spawn(work);
  run.spawn(look);
  if (!kShardIsMade) run.spawn(work);
  run.check([&] {
    heap.deallocate(kept, kBytes);
    expect_empty(heap);
    heap.release_all();
    heap::Inside::check_invariants(heap);
  });
}

// ---- owners of a shard ----

// One shard, whose owner is who took it once.
struct Owned : Tiny {
  static constexpr unsigned shards() noexcept { return 1; }
  template <class A>
  static std::uint32_t spread() noexcept {
    return 0;
  }
  static constexpr std::uint32_t kLocksToOwn = 1;
  static constexpr unsigned kOwners = 4;
};
template <class A, class Orders = PrivateHeapOrders>
using OwnedHeap = BasicPrivateHeap<A, Owned, FewSlabs, heap::Unregistered, Orders>;

// Each thread has one block at a time, `pairs` times; the shard's owner changes with who takes it.
template <class H, unsigned kThreads, unsigned kPairs>
void one_at_a_time(Execution& run) {
  start_afresh();
  H heap;
  heap.deallocate(heap.allocate(kBytes), kBytes);
  for (unsigned t = 0; t < kThreads; ++t) {
    run.spawn([&heap] {
      for (unsigned i = 0; i < kPairs; ++i) {
        void* const block = heap.allocate(kBytes);
        SIM_CHECK(block != nullptr);
        use(block);
        heap.deallocate(block, kBytes);
      }
    });
  }
  run.check([&] { expect_empty(heap); });
}

// ---- the shipped algorithm ----

template <class H>
sim::Scenarios scenarios() {
  return {{within("first", 3, 2), own_blocks<H, 2, 1, false>},  // one core, two shards
          {within("meet", 3, 1, 1), own_blocks<H, 2, 2, true>},    {within("looked_at", 3, 1), looked_at<H, true>},
          {within("looked_at_made", 2, 1), looked_at<H, false>},   {within("move", 3, 0, 2), own_blocks<H, 2, 3, true>},
          {within("handed_over_moving", 3, 1, 2), handed_over<H>}, {within("handed_over", 4, 2), handed_over<H>},
          {within("limit", 2, 1), scarce<H, WhenLimited::kFail>},  {within("wait", 2, 1), scarce<H, WhenLimited::kWait>}};
}
template <class H>
sim::Scenarios scenarios_of_owners() {
  return {{within("owner", 3, 1), one_at_a_time<H, 2, 2>},
          {within("owners", 3, 0), one_at_a_time<H, 2, 3>},
          {within("owner_looked_at", 2, 2), looked_at<H, true>}};
}

TEST(PrivateHeap_Model, EveryScenario_NothingTwiceNothingLostNobodyWaits) {
  sim::expect_all_ok("private_heap", scenarios<Heap<SimAtomics>>());
}
TEST(PrivateHeap_Model, OwnersOfAShard_OneThreadInItAndNoneStaysInside) {
  sim::expect_all_ok("private_heap", scenarios_of_owners<OwnedHeap<SimAtomics>>());
}
TEST(PrivateHeap_Model, ThreeThreads_Pct) {
  sim::expect_all_ok("private_heap",
                     {{sim::at_random("pct", 2, 4, 20'000, 2), own_blocks<Heap<SimAtomics>, 3, 3, false>},
                      {sim::at_random("owners_pct", 2, 5, 20'000), one_at_a_time<OwnedHeap<SimAtomics>, 3, 4>}});
}
// A kernel without membarrier: an owner could not be seen inside, so that there may be none.
TEST(PrivateHeap_Model, WithoutMembarrier_NobodyOwnsAShard) {
  sim::expect_all_ok("private_heap", {{within("no_membarrier", 2, 1), one_at_a_time<OwnedHeap<model::NoMembarrier>, 2, 2>}});
}

// ---- mutants ----

template <class H>
Failure killed() {
  return sim::first_failure("private_heap", scenarios<H>(), 2);
}
template <class H>
Failure killed_among_owners() {
  return sim::first_failure("private_heap", scenarios_of_owners<H>(), 3);
}

FREEHOLD_WEAKER(RelaxedLock, PrivateHeapOrders, kLock, relaxed);
FREEHOLD_WEAKER(RelaxedUnlock, PrivateHeapOrders, kUnlock, relaxed);
FREEHOLD_WEAKER(RelaxedPublish, PrivateHeapOrders, kPublish, relaxed);
FREEHOLD_WEAKER(RelaxedFind, PrivateHeapOrders, kFind, relaxed);
FREEHOLD_WEAKER(RelaxedLeave, PrivateHeapOrders, kLeave, relaxed);
FREEHOLD_WEAKER(RelaxedLook, PrivateHeapOrders, kLook, relaxed);
struct OneWordForAll : PrivateHeapOrders {
  static constexpr bool kWordForEach = false;
};
template <class Orders>
using Ordered = Heap<SimAtomics, Orders>;
template <class Orders>
using OwnedOrdered = OwnedHeap<SimAtomics, Orders>;

TEST(PrivateHeap_Mutants, EveryOrderWeakened_IsSeen) {
  EXPECT_NE(killed<Ordered<RelaxedLock>>(), Failure::kNone);
  EXPECT_NE(killed<Ordered<RelaxedUnlock>>(), Failure::kNone);
  EXPECT_NE(killed<Ordered<RelaxedPublish>>(), Failure::kNone);
  EXPECT_NE(killed<Ordered<RelaxedFind>>(), Failure::kNone);
}
// Without the light fence nothing would fail here: it binds the compiler, and the machine runs what is written.
TEST(PrivateHeap_Mutants, OwnersOrdersAndFencesWeakened_AreSeen) {
  EXPECT_NE(killed_among_owners<OwnedOrdered<RelaxedLock>>(), Failure::kNone);
  EXPECT_NE(killed_among_owners<OwnedOrdered<RelaxedUnlock>>(), Failure::kNone);
  EXPECT_NE(killed_among_owners<OwnedOrdered<RelaxedLeave>>(), Failure::kNone);
  EXPECT_NE(killed_among_owners<OwnedOrdered<RelaxedLook>>(), Failure::kNone);
  EXPECT_NE(killed_among_owners<OwnedOrdered<OneWordForAll>>(), Failure::kNone);
  EXPECT_NE(killed_among_owners<OwnedHeap<model::NoHeavyFence>>(), Failure::kNone);
}

// A thread that gives memory back wakes no other.
struct SilentAtomics : SimAtomics {
  static void notify_all(atomic<std::uint32_t>&) noexcept {}
};
TEST(PrivateHeap_Mutants, NobodyIsWoken_Deadlock) {
  const sim::Scenarios waits = {{within("wait", 2, 1), scarce<Heap<SilentAtomics>, WhenLimited::kWait>}};
  EXPECT_EQ(sim::first_failure("private_heap", waits, 2), Failure::kDeadlock);
}

}  // namespace
}  // namespace freehold
