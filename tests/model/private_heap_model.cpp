// SPDX-License-Identifier: MIT
// PrivateHeap on the simulated machine: shards and their owners, the central lists, the end of memory, waiting for room, and
// threads that lock everything. The oracle: a block is data of the thread that has it, so that one handed out twice, or
// without what its former user did being visible, is a data race; the heap's invariants hold at the end; no thread waits for
// ever.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "freehold/alloc/scope/heap_map.hpp"
#include "freehold/heap/scoped_heap.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/mutants.hpp"
#include "tests/model/scenarios.hpp"

namespace freehold {
namespace {

using heap::BasicPrivateHeap;
using heap::HeapOptions;
using heap::PrivateHeapOrders;
using heap::WhenLimited;
using sim::Execution;
using sim::Failure;
using sim::SimAtomics;
using sim::within;

using Payload = SimAtomics::var<std::uint64_t>;

// Slabs of 4 KiB, pages of 256 bytes, batches of two slots.
struct Tiny {
  static constexpr unsigned kPageShift = 8;
  using Classes = heap::HeapClasses<128>;
  static constexpr std::size_t kBatchBytes = 0, kMinBatch = 2, kMaxBatch = 2;
  static constexpr unsigned shards() noexcept { return 2; }
  // Threads find their shard by their number. Here that is the CPU on which they run, so that they meet, and move.
  template <class A>
  static std::uint32_t spread() noexcept {
    return A::cpu_id();
  }
  static constexpr std::uint32_t kLocksToOwn = 2;
  static constexpr unsigned kOwners = 2;
};
// Two slots to a page.
constexpr std::size_t kBytes = 112;

struct FewSlabs {
  static constexpr std::size_t kSlabs = 4, kSlabBytes = 4096;
  struct Memory {
    alignas(kSlabBytes) std::byte slabs[kSlabs][kSlabBytes];
    bool taken[kSlabs];
  };
  static Memory& memory() {
    static Memory memory;
    return memory;
  }
  static void* take(std::size_t bytes, std::size_t) noexcept {
    for (std::size_t i = 0; i < kSlabs; ++i) {
      if (memory().taken[i] || bytes > kSlabBytes) continue;
      memory().taken[i] = true;
      return memory().slabs[i];
    }
    return nullptr;
  }
  static void give_back(void* block, std::size_t) noexcept {
    SIM_CHECK(memory().taken[(static_cast<std::byte*>(block) - memory().slabs[0]) / kSlabBytes]);
    memory().taken[(static_cast<std::byte*>(block) - memory().slabs[0]) / kSlabBytes] = false;
  }
  static bool is_from(const void*) noexcept { return true; }
};

template <class A, class Orders = PrivateHeapOrders>
using Heap = BasicPrivateHeap<A, Tiny, FewSlabs, heap::Unregistered, Orders>;

// Uses a block as its owner may. The first words are where the heap keeps its links.
void use(void* block) {
  auto* const payload = static_cast<Payload*>(block);
  payload->store(payload->load() + 1);
}

template <class H>
void expect_empty(H& heap) {
  heap.check_invariants();
  SIM_CHECK(heap.stats().live_objects == 0);
  heap.trim();
  heap.check_invariants();
  SIM_CHECK(heap.stats().slabs <= 2);  // those with the heap's own data
}

void start_afresh() { std::memset(static_cast<void*>(&FewSlabs::memory()), 0, sizeof(FewSlabs::Memory)); }

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
    heap.check_invariants();
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
    heap.before_fork();
    heap.after_fork();
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
    heap.check_invariants();
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

// ---- scopes: frees that find the heap by themselves, while it ends

// The source of the slabs of a scope's heap. A thread that gives a slab back may write to all of it: a block that another
// thread has still, or whose use is not visible, is a race.
struct ScopeSlabs : FewSlabs {
  inline static void* blocks[2];
  static void give_back(void* slab, std::size_t alignment) noexcept {
    for (void* const block : blocks)
      if (static_cast<std::size_t>(static_cast<std::byte*>(block) - static_cast<std::byte*>(slab)) < kSlabBytes) use(block);
    FewSlabs::give_back(slab, alignment);
  }
};

// The engine's part: which heap has a slab, and the threads' marks.
template <class MapOrders, bool kFences, bool kWaits>
struct ScopeWorld {
  using Map = alloc::HeapMap<alloc::ScopedHeap, SimAtomics, os::Pages, MapOrders>;
  struct State {
    typename Map::Entry entries[FewSlabs::kSlabs]{};
    typename Map::Mark marks[2]{};
  };
  inline static State* state;
  static typename Map::Entry& entry(const void* address) {
    return state->entries[(static_cast<const std::byte*>(address) - FewSlabs::memory().slabs[0]) / FewSlabs::kSlabBytes];
  }
  static constexpr alloc::ScopeEngine kEngine{nullptr,
                                              nullptr,
                                              nullptr,
                                              nullptr,
                                              [](const void* address, alloc::ScopedHeap& heap) noexcept {
                                                Map::put(entry(address), &heap);
                                                return true;
                                              },
                                              [](const void* address) noexcept { Map::put(entry(address), nullptr); },
                                              [](const alloc::ScopedHeap& heap) noexcept {
                                                if (kFences) SimAtomics::heavy_fence();
                                                for (const auto& mark : state->marks)
                                                  if (kWaits)
                                                    sync::wait_until<SimAtomics>([&] { return !Map::is_used(mark, &heap); });
                                              },
                                              nullptr};
  static void free(unsigned thread, void* block) {
    use(block);
    const bool found = Map::with_heap(
        state->marks[thread], entry(block), [] { SimAtomics::light_fence(); },
        [block](alloc::ScopedHeap& heap) { heap.calls->deallocate(heap, block); });
    SIM_CHECK(found);
  }
};

// Two threads free a block each, while a third ends the heap. Everything goes back, once.
template <class Orders, class World>
void ends_before_its_blocks(Execution& run) {
  using H = BasicPrivateHeap<SimAtomics, Tiny, ScopeSlabs, heap::Unregistered, Orders>;
  start_afresh();
  typename World::State state;
  World::state = &state;
  alignas(H) std::byte room[sizeof(H)];
  auto* const heap = ::new (room) H;
  alloc::ScopedHeap* const scoped = heap::scoped_heap(*heap, World::kEngine);
  SIM_CHECK(scoped != nullptr);
  for (void*& block : ScopeSlabs::blocks) block = scoped->calls->allocate(*scoped, kBytes, 16);
  for (unsigned thread = 0; thread < 2; ++thread) run.spawn([thread] { World::free(thread, ScopeSlabs::blocks[thread]); });
  run.spawn([heap] { heap->~H(); });
  run.check([&] {
    for (const bool taken : FewSlabs::memory().taken) SIM_CHECK(!taken);
    for (const auto& entry : state.entries) SIM_CHECK(World::Map::heap_of(entry) == nullptr);
  });
}
template <class Orders = PrivateHeapOrders, class MapOrders = alloc::HeapMapOrders, bool kFences = true, bool kWaits = true>
const sim::Scenarios kScopes{{within("ends", 2, 1), ends_before_its_blocks<Orders, ScopeWorld<MapOrders, kFences, kWaits>>}};

TEST(PrivateHeap_Model, AHeapThatEndsBeforeItsBlocks) { sim::expect_all_ok("private heap/scopes", kScopes<>); }

void expect_scope_mutant_killed(const sim::Scenarios& scenarios, const char* what) {
  EXPECT_NE(sim::first_failure("private heap/scopes", scenarios, 2, 1), Failure::kNone) << what;
}
FREEHOLD_WEAKER(PartNotReleased, PrivateHeapOrders, kLeavePart, acquire);
FREEHOLD_WEAKER(PartNotAcquired, PrivateHeapOrders, kLeavePart, release);
FREEHOLD_WEAKER(LeavesRelaxed, alloc::HeapMapOrders, kLeave, relaxed);
FREEHOLD_WEAKER(LooksRelaxed, alloc::HeapMapOrders, kLook, relaxed);
TEST(PrivateHeap_Model, MutantsOfScopes_AreKilled) {
  expect_scope_mutant_killed(kScopes<PartNotReleased>, "a part is left without a release");
  expect_scope_mutant_killed(kScopes<PartNotAcquired>, "a part is left without an acquire");
  expect_scope_mutant_killed(kScopes<PrivateHeapOrders, LeavesRelaxed>, "a call is left without a release");
  expect_scope_mutant_killed(kScopes<PrivateHeapOrders, LooksRelaxed>, "a mark is looked at without an acquire");
  expect_scope_mutant_killed(kScopes<PrivateHeapOrders, alloc::HeapMapOrders, false>, "no fence at the heap's end");
  expect_scope_mutant_killed(kScopes<PrivateHeapOrders, alloc::HeapMapOrders, true, false>, "no wait at the heap's end");
}

}  // namespace
}  // namespace freehold
