// SPDX-License-Identifier: MIT
// PrivateHeap on the simulated machine: shards and their owners, the central lists, the end of memory, waiting for room,
// and threads that lock everything. The oracle: a block is data of the thread that has it, so that one handed out twice, or
// without what its former user did being visible, is a data race; the heap's invariants hold at the end; nobody waits for
// ever.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "freehold/heap/private_heap.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/expect_ok.hpp"
#include "tests/model/mutants.hpp"

namespace freehold {
namespace {

using heap::BasicPrivateHeap;
using heap::HeapOptions;
using heap::PrivateHeapOrders;
using heap::WhenLimited;
using sim::Execution;
using sim::Failure;
using sim::Options;
using sim::Result;
using sim::SimAtomics;

using OnCpus = SimAtomics;

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
    memory().taken[(static_cast<std::byte*>(block) - memory().slabs[0]) / kSlabBytes] = false;
  }
  static bool is_from(const void*) noexcept { return true; }
};

struct Unregistered {
  template <class Heap>
  explicit Unregistered(Heap&) noexcept {}
  static void end() noexcept {}
};

template <class A, class Orders = PrivateHeapOrders>
using Heap = BasicPrivateHeap<A, Tiny, FewSlabs, Unregistered, Orders>;

// Uses a block as its owner may. The first words are where the heap keeps its links.
void use(void* block) {
  auto* const payload = static_cast<Payload*>(block);
  payload->store(payload->load() + 1);
}

Options bounds(const char* name, unsigned preemptions, unsigned stale, unsigned cpus = 0) {
  // The lock has a model of its own: nobody spins here.
  return {.name = name,
          .cpus = cpus,
          .preemptions = preemptions,
          .stale = stale,
          .executions = 20'000'000,
          .decide = sim::Decide::kAlternative};
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
template <class H>
Result own_blocks(const Options& options, unsigned threads, unsigned blocks, bool warm) {
  return sim::explore(options, [=](Execution& run) {
    start_afresh();
    H heap;
    if (warm) heap.deallocate(heap.allocate(kBytes), kBytes);
    for (unsigned t = 0; t < threads; ++t) {
      run.spawn([&heap, blocks] {
        void* held[4];
        for (unsigned i = 0; i < blocks; ++i) {
          held[i] = heap.allocate(kBytes);
          SIM_CHECK(held[i] != nullptr);
          use(held[i]);
        }
        for (unsigned i = 0; i < blocks; ++i) heap.deallocate(held[i], kBytes);
      });
    }
    run.check([&] { expect_empty(heap); });
  });
}

TEST(PrivateHeap_Model, FirstBlocksOfTwoThreads_OneCoreTwoShards) {
  expect_ok(own_blocks<Heap<OnCpus>>(bounds("private_heap/first", 3, 2), 2, 1, false));
}
TEST(PrivateHeap_Model, TwoThreadsOnOneCpu_TheyMeetInAShard) {
  expect_ok(own_blocks<Heap<OnCpus>>(bounds("private_heap/meet", 3, 1, 1), 2, 2, true));
}
TEST(PrivateHeap_Model, TwoThreadsThatMove_ChainsTravel) {
  expect_ok(own_blocks<Heap<OnCpus>>(bounds("private_heap/move", 3, 0, 2), 2, 3, true));
}

// One thread's blocks are freed by the other.
template <class H>
Result handed_over(const Options& options) {
  return sim::explore(options, [](Execution& run) {
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
  });
}
TEST(PrivateHeap_Model, BlocksFreedByTheOtherThreadOnMovingCpus_NoneLost) {
  expect_ok(handed_over<Heap<OnCpus>>(bounds("private_heap/handed_over_moving", 3, 1, 2)));
}
TEST(PrivateHeap_Model, BlocksFreedByTheOtherThread_NoneLost) {
  expect_ok(handed_over<Heap<OnCpus>>(bounds("private_heap/handed_over", 4, 2)));
}

// Room for three blocks and no more, two of which stay in use; both threads want the third, twice. Who waits gets it in the
// end.
template <class H>
Result scarce(const Options& options, WhenLimited when) {
  return sim::explore(options, [=](Execution& run) {
    start_afresh();
    HeapOptions heap_options;
    heap_options.limit_bytes = 512;
    unsigned live = 0;
    {
      H measure(heap_options);
      while (measure.allocate(kBytes) != nullptr) ++live;
    }
    heap_options.when_limited = when;
    H heap(heap_options);
    std::array<void*, 8> kept{};
    for (unsigned i = 0; i < live; ++i) kept[i] = heap.allocate(kBytes);
    heap.deallocate(kept[--live]);
    for (int t = 0; t < 2; ++t) {
      run.spawn([&heap, when] {
        void* const first = heap.allocate(kBytes);
        SIM_CHECK(first != nullptr || when == WhenLimited::kFail);
        if (first == nullptr) return;
        use(first);
        heap.deallocate(first, kBytes);
        void* const second = heap.allocate(kBytes);
        SIM_CHECK(second != nullptr || when == WhenLimited::kFail);
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
  });
}
TEST(PrivateHeap_Model, LimitReached_FailsOrFindsWhatIsFree) {
  expect_ok(scarce<Heap<OnCpus>>(bounds("private_heap/limit", 2, 1), WhenLimited::kFail));
}
TEST(PrivateHeap_Model, LimitReached_WaitsAndIsWoken) {
  expect_ok(scarce<Heap<OnCpus>>(bounds("private_heap/wait", 2, 1), WhenLimited::kWait));
}

// One thread looks at the whole heap, gives pages back, or holds it as before a fork, while the other works: in a shard that
// is there already, or in one that it makes meanwhile.
template <class H>
Result looked_at(const Options& options, bool shard_is_made) {
  return sim::explore(options, [=](Execution& run) {
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
    if (shard_is_made) run.spawn(work);
    run.spawn(look);
    if (!shard_is_made) run.spawn(work);
    run.check([&] {
      heap.deallocate(kept, kBytes);
      expect_empty(heap);
      heap.release_all();
      heap.check_invariants();
    });
  });
}
TEST(PrivateHeap_Model, LookedAtWhileUsed_WholeAndConsistent) {
  expect_ok(looked_at<Heap<OnCpus>>(bounds("private_heap/looked_at", 3, 1), true));
}
TEST(PrivateHeap_Model, LookedAtWhileAShardIsMade_WholeAndConsistent) {
  expect_ok(looked_at<Heap<OnCpus>>(bounds("private_heap/looked_at_made", 2, 1), false));
}
TEST(PrivateHeap_Model, ThreeThreads_Pct) {
  Options options = bounds("private_heap/pct", 0, 2, 2);
  options.strategy = sim::Strategy::kPct;
  options.depth = 4;
  options.executions = 20'000;
  expect_ok(own_blocks<Heap<OnCpus>>(options, 3, 3, false));
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
using OwnedHeap = BasicPrivateHeap<A, Owned, FewSlabs, Unregistered, Orders>;

// Each thread has one block at a time, `pairs` times; the shard's owner changes with who takes it.
template <class H>
Result one_at_a_time(const Options& options, unsigned threads, unsigned pairs) {
  return sim::explore(options, [=](Execution& run) {
    start_afresh();
    H heap;
    heap.deallocate(heap.allocate(kBytes), kBytes);
    for (unsigned t = 0; t < threads; ++t) {
      run.spawn([&heap, pairs] {
        for (unsigned i = 0; i < pairs; ++i) {
          void* const block = heap.allocate(kBytes);
          SIM_CHECK(block != nullptr);
          use(block);
          heap.deallocate(block, kBytes);
        }
      });
    }
    run.check([&] { expect_empty(heap); });
  });
}
TEST(PrivateHeap_Model, OwnerAndAnotherThread_OneOfThemInTheShard) {
  expect_ok(one_at_a_time<OwnedHeap<OnCpus>>(bounds("private_heap/owner", 3, 1), 2, 2));
}
// A kernel without membarrier: an owner could not be seen inside, so that there may be none.
struct NoMembarrier : SimAtomics {
  static bool may_fence_heavily() noexcept { return false; }
  static void heavy_fence() noexcept {}
};
TEST(PrivateHeap_Model, WithoutMembarrier_NobodyOwnsAShard) {
  expect_ok(one_at_a_time<OwnedHeap<NoMembarrier>>(bounds("private_heap/no_membarrier", 2, 1), 2, 2));
}
TEST(PrivateHeap_Model, OwnersOneAfterTheOther_NoneStaysInside) {
  expect_ok(one_at_a_time<OwnedHeap<OnCpus>>(bounds("private_heap/owners", 3, 0), 2, 3));
}
TEST(PrivateHeap_Model, OwnerLookedAt_WholeAndConsistent) {
  expect_ok(looked_at<OwnedHeap<OnCpus>>(bounds("private_heap/owner_looked_at", 2, 2), true));
}
TEST(PrivateHeap_Model, ThreeOwners_Pct) {
  Options options = bounds("private_heap/owners_pct", 0, 2);
  options.strategy = sim::Strategy::kPct;
  options.depth = 5;
  options.executions = 20'000;
  expect_ok(one_at_a_time<OwnedHeap<OnCpus>>(options, 3, 4));
}

// ---- mutants ----

template <class H>
bool anything_fails() {
  return !own_blocks<H>(bounds("private_heap/mutant/first", 2, 1), 2, 1, false).ok() ||
         !own_blocks<H>(bounds("private_heap/mutant/meet", 2, 1, 1), 2, 2, true).ok() ||
         !looked_at<H>(bounds("private_heap/mutant/looked_at", 2, 1), true).ok();
}

FREEHOLD_WEAKER(RelaxedLock, PrivateHeapOrders, kLock, relaxed);
FREEHOLD_WEAKER(RelaxedUnlock, PrivateHeapOrders, kUnlock, relaxed);
FREEHOLD_WEAKER(RelaxedPublish, PrivateHeapOrders, kPublish, relaxed);
FREEHOLD_WEAKER(RelaxedFind, PrivateHeapOrders, kFind, relaxed);
TEST(PrivateHeap_Mutants, EveryOrderWeakened_IsSeen) {
  EXPECT_TRUE((anything_fails<Heap<OnCpus, RelaxedLock>>()));
  EXPECT_TRUE((anything_fails<Heap<OnCpus, RelaxedUnlock>>()));
  EXPECT_TRUE((anything_fails<Heap<OnCpus, RelaxedPublish>>()));
  EXPECT_TRUE((anything_fails<Heap<OnCpus, RelaxedFind>>()));
}

template <class H>
bool owners_fail() {
  return !one_at_a_time<H>(bounds("private_heap/mutant/owner", 2, 1), 2, 2).ok() ||
         !one_at_a_time<H>(bounds("private_heap/mutant/owners", 3, 0), 2, 3).ok() ||
         !looked_at<H>(bounds("private_heap/mutant/owner_looked_at", 2, 1), true).ok();
}
FREEHOLD_WEAKER(RelaxedLeave, PrivateHeapOrders, kLeave, relaxed);
FREEHOLD_WEAKER(RelaxedLook, PrivateHeapOrders, kLook, relaxed);
struct OneWordForAll : PrivateHeapOrders {
  static constexpr bool kWordForEach = false;
};
// Without the light fence nothing would fail here: it binds the compiler, and the machine runs what is written.
struct NoHeavyFence : OnCpus {
  static void heavy_fence() noexcept {}
};
TEST(PrivateHeap_Mutants, OwnersOrdersAndFencesWeakened_AreSeen) {
  EXPECT_TRUE((owners_fail<OwnedHeap<OnCpus, RelaxedLock>>()));
  EXPECT_TRUE((owners_fail<OwnedHeap<OnCpus, RelaxedUnlock>>()));
  EXPECT_TRUE((owners_fail<OwnedHeap<OnCpus, RelaxedLeave>>()));
  EXPECT_TRUE((owners_fail<OwnedHeap<OnCpus, RelaxedLook>>()));
  EXPECT_TRUE((owners_fail<OwnedHeap<OnCpus, OneWordForAll>>()));
  EXPECT_TRUE((owners_fail<OwnedHeap<NoHeavyFence>>()));
}

// Who gives memory back wakes nobody.
struct SilentAtomics : OnCpus {
  static void notify_all(atomic<std::uint32_t>&) noexcept {}
};
TEST(PrivateHeap_Mutants, NobodyIsWoken_Deadlock) {
  const Result result = scarce<Heap<SilentAtomics>>(bounds("private_heap/mutant/silent", 2, 1), WhenLimited::kWait);
  EXPECT_EQ(result.failure, Failure::kDeadlock) << result;
}

}  // namespace
}  // namespace freehold
