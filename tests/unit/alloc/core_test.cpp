// SPDX-License-Identifier: MIT
#include "freehold/alloc/core.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "freehold/base/check.hpp"
#include "tests/support/emulated.hpp"
#include "tests/unit/alloc/support.hpp"
#include "tests/unit/hooked_atomics.hpp"

namespace freehold::alloc {
namespace {

using test::FakeClock;
using test::FakePages;
using test::HeapErrors;
using test::kSpan;
using test::small_settings;
using test::SmallConfig;
using test::Stamped;
using Machine = test::TestCore<>;
using Thread = test::Thread<Machine>;
using Classes = SizeClasses;

constexpr SizeClass kTiny = Classes::class_of(16);
constexpr SizeClass kBig = Classes::class_of(16 * 1024);

// Everything was freed and every thread left: not a slot, not a span is missing.
void expect_whole(Machine& machine) {
  EXPECT_TRUE(machine->check_invariants());
  EXPECT_TRUE(machine->check_accounts());
  (void)machine->trim();
  EXPECT_TRUE(machine->check_invariants());
  EXPECT_TRUE(machine->check_accounts());
  const auto told = machine.arena().budget().figures();
  EXPECT_EQ(told.live, 0);
  EXPECT_EQ(told.class_spans, 0);
  EXPECT_EQ(told.returned, 0);
  EXPECT_EQ(told.direct, 0);
  EXPECT_EQ(told.kept, 0);
  const Stats s = machine.stats();
  EXPECT_EQ(s.small_span_bytes, 0U) << "spans still belong to a class";
  EXPECT_EQ(s.run_bytes, 0U);
  EXPECT_EQ(s.direct_bytes, 0U);
  EXPECT_EQ(s.free_dirty_bytes, 0U);
  EXPECT_EQ(s.threads, 0U);
}

// ---- a thread's bins --------------------------------------------------------------------------------------------------

TEST(Core, Attach_NewCache_HoldsNothingAndHasItsShare) {
  Machine machine;
  Thread thread(machine);
  ASSERT_NE(thread.cache(), nullptr);
  EXPECT_EQ(thread.cache()->granted, 0U);
  EXPECT_EQ(thread.cache()->allowance, SmallConfig::kThreadBytes);
  for (unsigned i = 0; i < Classes::kCount; ++i) {
    const SizeClass c{i};
    EXPECT_EQ(thread.cache()->pop(c), nullptr);
    EXPECT_FALSE(thread.cache()->push(c, thread.cache()));
  }
  EXPECT_TRUE(machine->check_invariants());
}

TEST(Core, Refill_EveryClass_GivesDistinctSlotsAndTheBinGrows) {
  Machine machine(small_settings(), std::size_t{64} << 20);
  Thread thread(machine);
  for (const SizeClass c : AllClasses<Classes>{}) {
    std::set<void*> slots;
    unsigned capacity = 0;
    for (int i = 0; i < 300; ++i) {
      void* slot = thread.allocate_class(c);
      ASSERT_NE(slot, nullptr);
      ASSERT_TRUE(slots.insert(slot).second) << "a slot given twice";
      ASSERT_EQ(machine.class_of(slot), c);
      ASSERT_GE(thread.cache()->bins[c].capacity, capacity);
      capacity = thread.cache()->bins[c].capacity;
    }
    EXPECT_LE(capacity, SmallConfig::kMaxSlots);
    EXPECT_LE(capacity * Classes::slot_bytes(c),
              std::max(SmallConfig::kBinBytes, SmallConfig::kMinSlots * Classes::slot_bytes(c)));
    for (void* slot : slots) thread.free(slot);
    ASSERT_TRUE(machine->check_invariants()) << c.index();
  }
  thread.leave();
  expect_whole(machine);
}

// ---- marks of samples -------------------------------------------------------------------------------------------------

TEST(Core, Marks_InABin_PopsStopThereAndTheSlotsGoBack) {
  Machine machine;
  Thread thread(machine);
  auto& cache = *thread.cache();
  void* const first = thread.allocate_class(kTiny);
  const std::size_t n = cache.entries(kTiny);
  ASSERT_GE(n, 4U);
  machine->mark_entry(cache, kTiny, n - 1);
  machine->mark_entry(cache, kTiny, n - 3);
  EXPECT_EQ(cache.bins[kTiny].marks, 2U);
  EXPECT_TRUE(machine->check_invariants());
  EXPECT_TRUE(machine->check_accounts());
  EXPECT_EQ(cache.pop(kTiny), nullptr);
  EXPECT_TRUE(cache.pop_mark(kTiny));
  EXPECT_FALSE(cache.pop_mark(kTiny)) << "below the mark is a slot";
  void* const second = cache.pop(kTiny);
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(cache.pop(kTiny), nullptr);
  EXPECT_EQ(cache.bins[kTiny].marks, 1U);
  EXPECT_TRUE(machine->check_invariants());
  for (void* slot : {first, second}) thread.free(slot);
  thread.leave();
  expect_whole(machine);
}

// A drain gives the older half back: marks in it end, those in the younger stay.
TEST(Core, Marks_WhereSlotsLeave_TheyEnd) {
  Machine machine(small_settings(), std::size_t{1} << 20);
  Thread thread(machine);
  auto& cache = *thread.cache();
  std::vector<void*> blocks;
  for (int i = 0; i < 1'000; ++i) blocks.push_back(thread.allocate_class(kTiny));
  unsigned pushed = 0, most = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    thread.free(blocks[i]);
    if (i % 5 == 0) machine->push_mark(cache, kTiny), ++pushed;
    most = std::max<unsigned>(most, cache.bins[kTiny].marks);
    ASSERT_TRUE(machine->check_invariants()) << i;
    ASSERT_TRUE(machine->check_accounts()) << i;
  }
  EXPECT_GT(most, 10U);
  EXPECT_LT(cache.bins[kTiny].marks, pushed / 2);
  machine->flush(cache);
  EXPECT_EQ(cache.bins[kTiny].marks, 0U);
  thread.leave();
  expect_whole(machine);
}

TEST(Core, Marks_ThreadWithoutABin_NoRoomForOne) {
  Machine machine(small_settings(), 0);
  Thread thread(machine);
  auto& cache = *thread.cache();
  machine->push_mark(cache, kBig);
  EXPECT_EQ(cache.bins[kBig].marks, cache.entries(kBig));
  EXPECT_TRUE(machine->check_invariants());
  machine->flush(cache);
  EXPECT_EQ(cache.bins[kBig].marks, 0U);
  thread.leave();
  expect_whole(machine);
}

// A word that was cut to the number of slots that were missing left a fragment, which cut the next word, and so on for ever:
// each refill came as the end of one word after the beginning of the next.
TEST(Core, Refill_AfterAFragment_WholeWordsInOrderAgain) {
  constexpr std::size_t kSlots = 64 * 64;  // a span
  Machine machine(small_settings(), std::size_t{1} << 20);
  Thread thread(machine);
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < kSlots; ++i) blocks.push_back(thread.allocate_class(kTiny));
  std::sort(blocks.begin(), blocks.end());
  ASSERT_EQ(thread.cache()->bins[kTiny].capacity, 128U) << "a batch is not a word";
  for (std::size_t i = 50; i < kSlots; ++i) thread.free(blocks[i]);  // of the first word a fragment is free
  blocks.resize(50);
  machine->flush(*thread.cache());

  unsigned descents = 0;
  void* former = nullptr;
  for (std::size_t i = 0; i < kSlots - 64; ++i) {
    void* slot = thread.allocate_class(kTiny);
    ASSERT_NE(slot, nullptr);
    descents += slot < former ? 1 : 0;
    former = slot;
    blocks.push_back(slot);
  }
  EXPECT_LE(descents, 5U) << "about one for each of the 63 refills if words are cut";
  for (void* block : blocks) thread.free(block);
  thread.leave();
  expect_whole(machine);
}

TEST(Core, Refill_NoBudget_StaysWithinTheThreadsShare) {
  Machine machine(small_settings(), 0);
  Thread thread(machine);
  std::vector<void*> blocks;
  for (int round = 0; round < 2000; ++round) {
    blocks.push_back(
        thread.allocate_class(SizeClass{1 + static_cast<unsigned>(round) % (static_cast<unsigned>(Classes::kCount) - 1)}));
    ASSERT_NE(blocks.back(), nullptr);
    ASSERT_LE(thread.cache()->granted, SmallConfig::kThreadBytes);
  }
  EXPECT_EQ(thread.cache()->allowance, SmallConfig::kThreadBytes);
  for (void* block : blocks) thread.free(block);
  EXPECT_TRUE(machine->check_invariants());
  thread.leave();
  expect_whole(machine);
}

TEST(Core, Budget_ManyThreads_CachesStayWithinIt) {
  constexpr std::size_t kThreads = 100;
  Machine machine(small_settings(std::size_t{256} << 20));
  std::vector<std::unique_ptr<Thread>> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    auto& thread = *threads.emplace_back(std::make_unique<Thread>(machine));
    std::vector<void*> blocks;
    for (int i = 0; i < 200; ++i)
      for (const SizeClass c : {kTiny, Classes::class_of(512), Classes::class_of(4096)})
        blocks.push_back(thread.allocate_class(c));
    for (void* block : blocks) thread.free(block);  // now it idles with what it cached
  }
  std::size_t granted = 0, lent = 0;
  for (auto& thread : threads) {
    granted += thread->cache()->granted;
    lent += thread->cache()->allowance - SmallConfig::kThreadBytes;
    EXPECT_LE(thread->cache()->allowance, SmallConfig::kThreadMaxBytes);
  }
  EXPECT_LE(lent, Machine::kBudget);
  EXPECT_GT(lent, 0U);
  EXPECT_LE(granted, kThreads * SmallConfig::kThreadBytes + Machine::kBudget);
  EXPECT_TRUE(machine->check_invariants());
  EXPECT_EQ(machine.stats().threads, kThreads);
  threads.clear();
  expect_whole(machine);
}

// Two threads borrow at the same time: the first has read what is left when the second takes it.
TEST(Core, Budget_TwoThreadsBorrowTheLastOfIt_OneGetsIt) {
  using Interrupted = test::TestCore<test::HookedAtomics>;
  Interrupted machine(small_settings(), SmallConfig::kBudgetStepBytes);
  test::Thread first(machine), second(machine);
  const auto use = [](auto& thread) {
    std::vector<void*> blocks;
    for (int i = 0; i < 100; ++i) blocks.push_back(thread.allocate_class(Classes::class_of(4096)));
    for (void* block : blocks) thread.free(block);
  };
  const void* left = nullptr;
  machine->for_each_live_figure([&](LiveFigure figure, const auto& atomic, auto...) {
    if (figure == LiveFigure::kCacheRoomBytes) left = &atomic;
  });
  bool met = false;
  test::HookedAtomics::interrupt_before_change_of(left, [&] {
    met = true;
    use(second);
  });
  use(first);
  test::HookedAtomics::hook = nullptr;
  EXPECT_TRUE(met);
  EXPECT_EQ(first.cache()->allowance + second.cache()->allowance - 2 * SmallConfig::kThreadBytes,
            SmallConfig::kBudgetStepBytes);
  EXPECT_TRUE(machine->check_invariants());
}

// A thread that comes while another one does: both take the lock of the threads' caches, under which their memory is mapped.
TEST(Core, LiveFigures_WaitsForTheLockOfTheCaches_AreAmongThem) {
  Machine machine;
  const auto waits = [&] {
    std::uint64_t sum = 0;
    machine->for_each_live_figure([&](LiveFigure figure, const auto& atomic, auto...) {
      if constexpr (requires { atomic.load(std::memory_order_relaxed); })
        if (figure == LiveFigure::kLockWaits) sum += static_cast<std::uint64_t>(atomic.load(std::memory_order_relaxed));
    });
    return sum;
  };
  std::thread other;
  std::vector<Machine::Cache*> caches;
  machine.pages.before_map = [&] {
    if (other.joinable()) return;
    other = std::thread([&] { machine->detach(machine->attach()); });
    for (int i = 0; i < 10'000 && waits() == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  while (!other.joinable() && caches.size() < 1'000) caches.push_back(machine->attach());
  ASSERT_TRUE(other.joinable());
  other.join();
  machine.pages.before_map = nullptr;
  EXPECT_EQ(waits(), 1U);
  EXPECT_EQ(machine.stats().lock_waits, 1U);
  for (Machine::Cache* cache : caches) machine->detach(cache);
  expect_whole(machine);
}

TEST(Core, Budget_OneThreadThatUsesEveryClass_LeavesAPartToOthers) {
  Machine machine(small_settings(std::size_t{256} << 20));
  const auto use = [](Thread& thread) {
    std::vector<void*> blocks;
    for (int i = 0; i < 300; ++i)  // all in turn, so that none is idle
      for (const SizeClass c : AllClasses<Classes>{}) blocks.push_back(thread.allocate_class(c));
    for (void* block : blocks) thread.free(block);
  };
  Thread greedy(machine), modest(machine);
  use(greedy);
  EXPECT_GT(greedy.cache()->allowance, SmallConfig::kThreadMaxBytes - SmallConfig::kBinBytes)
      << "it wants all that it can have";
  EXPECT_LE(greedy.cache()->allowance, SmallConfig::kThreadMaxBytes);
  use(modest);
  EXPECT_GT(modest.cache()->allowance, SmallConfig::kThreadMaxBytes - SmallConfig::kBinBytes);
  EXPECT_TRUE(machine->check_invariants());
}

TEST(Core, Drain_FullBin_TheOldestHalfGoesBackTheNewestStay) {
  Machine machine(small_settings(), std::size_t{64} << 20);
  Thread thread(machine);
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(thread.allocate_class(kTiny));
  for (void* block : blocks) thread.free(block);
  const auto& bin = thread.cache()->bins[kTiny];
  EXPECT_EQ(bin.capacity, SmallConfig::kMaxSlots);
  const std::size_t n = thread.cache()->entries(kTiny);
  EXPECT_GE(n, bin.capacity / 2U);
  for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(thread.allocate_class(kTiny), blocks[blocks.size() - 1 - i]) << "LIFO";
}

TEST(Core, IdleBins_AreDrainedAndTheirGrantGoesBack) {
  Machine machine(small_settings(), std::size_t{64} << 20);
  Thread thread(machine);
  std::vector<void*> blocks;
  const SizeClass idle = Classes::class_of(256);
  for (int i = 0; i < 500; ++i) blocks.push_back(thread.allocate_class(idle));
  for (void* block : blocks) thread.free(block);
  EXPECT_NE(thread.cache()->bins[idle].array, nullptr);
  for (int i = 0; i < 1000; ++i) {  // slow calls of another class, more than its bin takes
    std::vector<void*> others(64);
    for (void*& block : others) block = thread.allocate_class(kBig);
    for (void* block : others) thread.free(block);
  }
  EXPECT_EQ(thread.cache()->bins[idle].array, nullptr);
  EXPECT_EQ(thread.cache()->granted, thread.cache()->bins[kBig].capacity * Classes::slot_bytes(kBig));
  EXPECT_TRUE(machine->check_invariants());
  void* again = thread.allocate_class(idle);
  EXPECT_NE(again, nullptr) << "it begins anew";
  thread.free(again);
}

TEST(Core, Flush_CacheIsEmptyAndWorksOn) {
  Machine machine;
  Thread thread(machine);
  for (const SizeClass c : AllClasses<Classes>{}) thread.free(thread.allocate_class(c));
  machine->flush(*thread.cache());
  for (const SizeClass c : AllClasses<Classes>{}) EXPECT_EQ(thread.cache()->entries(c), 0U);
  EXPECT_TRUE(machine->check_invariants());
  EXPECT_NE(thread.allocate(100), nullptr);
}

// ---- threads come and go ----------------------------------------------------------------------------------------------

TEST(Core, Detach_ReturnsEverything_SlotsGrantAndRecord) {
  Machine machine;
  std::size_t metadata = 0;
  for (int round = 0; round < 200; ++round) {
    Thread thread(machine);
    std::vector<void*> blocks;
    for (const SizeClass c : AllClasses<Classes>{})
      for (int i = 0; i < 5; ++i) blocks.push_back(thread.allocate_class(c));
    for (void* block : blocks) thread.free(block);
    thread.leave();
    EXPECT_TRUE(machine->check_invariants());
    if (round == 3) metadata = machine.stats().metadata_bytes;
  }
  EXPECT_EQ(machine.stats().metadata_bytes, metadata) << "short threads leave nothing behind";
  EXPECT_EQ(machine.stats().threads_peak, 1U);
  expect_whole(machine);
}

TEST(Core, DetachAll_ManyThreadsAreGone_NoneStays) {
  Machine machine;
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < 40; ++i) {
    auto& thread = *threads.emplace_back(std::make_unique<Thread>(machine));
    thread.free(thread.allocate_class(kTiny));
  }
  const auto* const last = threads.back()->cache();
  machine->detach_all([last](const auto& cache) { return &cache != last; });
  EXPECT_EQ(machine.stats().threads, 1U);
  for (std::size_t i = 0; i + 1 < threads.size(); ++i) threads[i]->forget();
  threads.clear();
  expect_whole(machine);
}

TEST(Core, Free_ByAnotherThread_ThenBothLeave_NothingIsLost) {
  Machine machine;
  Thread producer(machine), consumer(machine);
  for (int round = 0; round < 50; ++round) {
    std::vector<Stamped> blocks;
    for (unsigned i = 0; i < 300; ++i) {
      const std::size_t bytes = 1 + i * 37 % 5000;
      blocks.emplace_back(producer.allocate(bytes), bytes, i);
    }
    for (const Stamped& b : blocks) {
      ASSERT_TRUE(b.intact());
      consumer.free(b.memory);
    }
    ASSERT_TRUE(machine->check_invariants());
  }
  producer.leave();
  consumer.leave();
  expect_whole(machine);
}

TEST(Core, Uncached_AllocateAndFree_EveryClass) {
  Machine machine(small_settings(std::size_t{64} << 20));
  Thread thread(machine, Thread::Uncached{});
  std::vector<Stamped> blocks;
  for (const SizeClass c : AllClasses<Classes>{})
    for (unsigned i = 0; i < 70; ++i) {
      void* slot = thread.allocate_class(c);
      ASSERT_NE(slot, nullptr);
      ASSERT_EQ(machine.class_of(slot), c);
      blocks.emplace_back(slot, Classes::slot_bytes(c), i);
    }
  EXPECT_TRUE(machine->check_invariants());
  for (const Stamped& b : blocks) {
    EXPECT_TRUE(b.intact());
    thread.free(b.memory);
  }
  EXPECT_EQ(machine.stats().late_frees, blocks.size());
  expect_whole(machine);
}

// Frees that come after a thread's end meet threads that live.
TEST(Core, Uncached_BesideCachedThreads_ShareTheMemory) {
  Machine machine;
  Thread living(machine), late(machine, Thread::Uncached{});
  std::vector<void*> blocks;
  for (int i = 0; i < 3000; ++i) blocks.push_back((i % 3 == 0 ? late : living).allocate(48));
  EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) (i % 2 == 0 ? late : living).free(blocks[i]);
  living.leave();
  expect_whole(machine);
}

TEST(Core, Fork_ChildAdoptsOrphans_ButNotOneCaughtInASlowPath) {
  Machine machine;
  Thread mine(machine), idle(machine), busy(machine);
  for (Thread* thread : {&mine, &idle, &busy}) {
    std::vector<void*> blocks;
    for (int i = 0; i < 40; ++i) blocks.push_back(thread->allocate(64));
    for (void* block : blocks) thread->free(block);
  }
  busy.cache()->in_slow_path.store(1);
  machine->after_fork_in_child(mine.cache());
  EXPECT_EQ(machine->threads(), 2U);
  EXPECT_TRUE(machine->check_invariants());
  EXPECT_NE(mine.allocate(64), nullptr);
  // `idle` is gone with its thread; `busy` would be in a real child.
  busy.cache()->in_slow_path.store(0);
  EXPECT_NE(busy.allocate(64), nullptr) << "the parent goes on";
  idle.forget();
}

// A thread is leaving when another forks: its bins are given back one by one, each for a moment under a lock, and the
// child may not take what it finds half done for a whole cache.
TEST(Core, Fork_AmidAThreadsLeaving_ChildLeavesItsCacheAlone) {
  using Interrupted = test::TestCore<test::HookedAtomics>;
  Interrupted machine;
  test::Thread<Interrupted> mine(machine), leaving(machine);
  for (const std::size_t bytes : {16, 64, 256}) leaving.free(leaving.allocate(bytes));
  auto* const cache = leaving.cache();
  unsigned looks = 0, marked = 0;
  test::HookedAtomics::hook = [&](const void* changed) {  // every change of an atomic is a moment where a fork may come
    if (changed == &cache->in_slow_path) return;
    ++looks;
    marked += cache->in_slow_path.load();
  };
  leaving.leave();
  test::HookedAtomics::hook = nullptr;
  EXPECT_GT(looks, 10U);
  EXPECT_EQ(marked, looks);
  mine.leave();
  EXPECT_TRUE(machine->check_invariants());
}

// ---- large blocks -----------------------------------------------------------------------------------------------------

TEST(Core, Large_SizesAroundEveryBoundary_AreUsableAndApart) {
  Machine machine(small_settings(std::size_t{64} << 20));
  Thread thread(machine);
  std::vector<Stamped> blocks;
  for (const std::size_t around : {Classes::kMaxBytes + 1, kSpan, 2 * kSpan, 5 * kSpan, std::size_t{1} << 20})
    for (const std::size_t bytes : {around - 1, around, around + 1, around + 4096}) {
      if (bytes <= Classes::kMaxBytes) continue;
      void* block = thread.allocate(bytes);
      ASSERT_NE(block, nullptr);
      EXPECT_GE(machine.usable(block), bytes);
      EXPECT_LT(machine.usable(block), bytes + SmallConfig::kPageBytes);
      blocks.emplace_back(block, machine.usable(block), static_cast<unsigned>(blocks.size()));
    }
  EXPECT_TRUE(machine->check_invariants());
  for (const Stamped& b : blocks) {
    EXPECT_TRUE(b.intact());
    thread.free(b.memory);
  }
  thread.leave();
  expect_whole(machine);
}

TEST(Core, Large_ZeroIsOnlyClaimedWhereItHolds) {
  Machine machine;
  std::mt19937 random(9);
  std::vector<void*> blocks;
  for (int step = 0; step < 2000; ++step) {
    if (blocks.size() < 12) {
      const std::size_t bytes = Classes::kMaxBytes + 1 + random() % (6 * kSpan);
      bool zero = false;
      void* block = machine->allocate_large(nullptr, bytes, 1, zero);
      if (block == nullptr) continue;
      ASSERT_TRUE(!zero || test::all_zero(block, bytes)) << step;
      std::memset(block, 0xab, bytes);
      blocks.push_back(block);
    } else {
      while (blocks.size() > random() % 12) {
        machine->free_large(nullptr, blocks.back());
        blocks.pop_back();
      }
      if (random() % 4 == 0) (void)machine->trim();
    }
  }
  for (void* block : blocks) machine->free_large(nullptr, block);
  expect_whole(machine);
}

TEST(Core, Aligned_EveryPowerOfTwoUpTo8MiB_Holds) {
  Machine machine(small_settings(std::size_t{64} << 20));
  Thread thread(machine);
  for (std::size_t alignment = 16; alignment <= std::size_t{8} << 20; alignment *= 2)
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, alignment, 3 * alignment / 2 + 1}) {
      void* block = thread.allocate_aligned(alignment, bytes);
      ASSERT_NE(block, nullptr) << alignment << ", " << bytes;
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U);
      EXPECT_GE(machine.usable(block), bytes);
      std::memset(block, 1, bytes);
      thread.free(block);
    }
  thread.leave();
  expect_whole(machine);
}

TEST(Core, Large_AbsurdSizesAndAlignments_AreNull) {
  Machine machine;
  bool zero = false;
  for (const std::size_t bytes :
       {SIZE_MAX, SIZE_MAX - 4095, std::size_t{PTRDIFF_MAX}, std::size_t{PTRDIFF_MAX} + 1, std::size_t{PTRDIFF_MAX} - 4096})
    for (const std::size_t alignment : {std::size_t{1}, std::size_t{4096}, std::size_t{1} << 40, std::size_t{1} << 63})
      EXPECT_EQ(machine->allocate_large(nullptr, bytes, alignment, zero), nullptr);
  EXPECT_EQ(machine->allocate_large(nullptr, 100'000, std::size_t{1} << 63, zero), nullptr);
  EXPECT_EQ(machine->allocate_large(nullptr, 100'000, std::size_t{1} << 62, zero), nullptr);
  expect_whole(machine);
}

TEST(Core, Direct_LargerThanAChunk_IsMappedByItself) {
  Machine machine;
  Thread thread(machine);
  const std::size_t bytes = std::size_t{20} << 20;
  Stamped a(thread.allocate(bytes), bytes, 1);
  ASSERT_NE(a.memory, nullptr);
  EXPECT_EQ(machine.class_of(a.memory), SizeClass{});
  EXPECT_EQ(machine.usable(a.memory), bytes);
  for (const std::size_t alignment : {std::size_t{1} << 16, std::size_t{1} << 21, std::size_t{1} << 24}) {
    void* b = thread.allocate_aligned(alignment, bytes);
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b) % alignment, 0U);
    EXPECT_TRUE(test::all_zero(b, bytes));
    std::memset(b, 2, machine.usable(b));
    thread.free(b);
  }
  EXPECT_TRUE(a.intact());
  void* const moved = machine->resize_large(nullptr, a.memory, 2 * bytes);
  ASSERT_NE(moved, nullptr) << "grows without a copy";
  a.memory = static_cast<unsigned char*>(moved);
  EXPECT_TRUE(a.intact());
  EXPECT_TRUE(test::all_zero(a.memory + bytes, bytes));
  EXPECT_TRUE(machine->check_invariants());
  EXPECT_TRUE(machine->check_accounts());
  EXPECT_EQ(machine.stats().direct_bytes, 2 * bytes);
  thread.free(a.memory);
  thread.leave();
  expect_whole(machine);
}

// Nothing of the arena's range is reserved, so the system may put a mapping of ours there.
TEST(Core, Direct_BetweenTheArenasChunks_IsABlockLikeAnyOther) {
  Machine machine;
  Thread thread(machine);
  thread.free(thread.allocate(100));
  thread.free(thread.allocate(100'000));  // two chunks, one of either kind
  const std::size_t bytes = std::size_t{2} << 20;
  char* const place = reinterpret_cast<char*>(machine.arena().base()) + 3 * test::kChunk;
  bool zero = false;
  (void)machine->allocate_large(nullptr, bytes, 1, zero);  // the records are mapped
  machine.pages.next_map_at(place);
  Stamped block(machine->allocate_large(nullptr, bytes, 1, zero), bytes, 5);
  ASSERT_EQ(static_cast<void*>(block.memory), place);
  std::vector<void*> others;
  for (int i = 0; i < 12; ++i) others.push_back(machine->allocate_large(nullptr, test::kChunk, 1, zero));
  ASSERT_GT(machine.arena().span_count() * kSpan, 5 * test::kChunk) << "the arena has grown past it";
  EXPECT_TRUE(block.intact());
  EXPECT_EQ(machine.usable(place), bytes);
  void* const moved = machine->resize_large(nullptr, place, 2 * bytes);
  ASSERT_NE(moved, nullptr);
  block.memory = static_cast<unsigned char*>(moved);
  EXPECT_TRUE(block.intact());
  const HeapErrors errors;
  machine->free_large(nullptr, moved);
  EXPECT_TRUE(HeapErrors::seen.empty());
  for (void* other : others) machine->free_large(nullptr, other);
  EXPECT_TRUE(HeapErrors::seen.empty());
  EXPECT_TRUE(machine->check_invariants());
  EXPECT_TRUE(machine->check_accounts());
}

TEST(Core, Direct_WhenTheArenaIsFull_ServesLargeBlocks) {
  Machine machine(small_settings(std::size_t{1} << 20));
  Thread thread(machine);
  std::vector<Stamped> blocks;
  for (unsigned i = 0; i < 40; ++i) blocks.emplace_back(thread.allocate(3 * kSpan), 3 * kSpan, i);  // 7.5 MiB
  EXPECT_GT(machine.stats().direct_bytes, 0U);
  for (const Stamped& b : blocks) {
    EXPECT_TRUE(b.intact());
    thread.free(b.memory);
  }
  thread.leave();
  expect_whole(machine);
}

// Random sizes up and down, every way of growing, with and without a kernel that moves pages.
TEST(Core, ResizeLarge_RandomSizes_KeepsTheContentOrTheBlock) {
  for (const bool can_move : {true, false}) {
    Machine machine;
    if (!can_move) machine.pages.fail_from_now_on(FakePages::kMoveOut);
    std::mt19937 random(4);
    std::vector<Stamped> blocks;
    unsigned in_place = 0, moved = 0, refused = 0;
    const auto fresh_block = [&](unsigned stamp) {
      const std::size_t bytes = (1 + random() % 12) * kSpan;
      bool zero = false;
      return Stamped(machine->allocate_large(nullptr, bytes, 1, zero), bytes, stamp);
    };
    for (unsigned i = 0; i < 6; ++i) blocks.push_back(fresh_block(i + 1));
    for (int step = 0; step < 1000; ++step) {
      Stamped& b = blocks[random() % blocks.size()];
      if (step % 8 == 0) {  // in the arena again
        ASSERT_TRUE(b.intact());
        machine->free_large(nullptr, b.memory);
        b = fresh_block(b.stamp);
      }
      const std::size_t bytes = Classes::kMaxBytes + 1 + random() % (40 * kSpan);
      void* const fresh = machine->resize_large(nullptr, b.memory, bytes);
      if (fresh != nullptr) {
        ++(fresh == b.memory ? in_place : moved);
        b.memory = static_cast<unsigned char*>(fresh);
        const std::size_t kept = std::min(b.bytes, bytes);
        b.bytes = kept;
        ASSERT_TRUE(b.intact()) << step;
        ASSERT_GE(machine.usable(b.memory), bytes);
        b.bytes = bytes;
        b.write(kept);
      } else {
        ++refused;
      }
      ASSERT_TRUE(machine->check_invariants()) << step;
      ASSERT_TRUE(machine->check_accounts()) << step;
      if (step % 16 != 0) continue;
      for (const Stamped& other : blocks) ASSERT_TRUE(other.intact()) << step;
    }
    EXPECT_GT(in_place, 100U);
    EXPECT_GT(can_move && !test::emulated() ? moved : refused, 100U);
    EXPECT_GT(machine.pages.calls(FakePages::kMoveOut), 50U);
    for (const Stamped& b : blocks) machine->free_large(nullptr, b.memory);
    expect_whole(machine);
  }
}

TEST(Core, ResizeLarge_ToSmallOrAbsurd_IsLeftToTheCaller) {
  Machine machine;
  bool zero = false;
  void* block = machine->allocate_large(nullptr, 3 * kSpan, 1, zero);
  EXPECT_EQ(machine->resize_large(nullptr, block, Classes::kMaxBytes), nullptr);
  EXPECT_EQ(machine->resize_large(nullptr, block, SIZE_MAX), nullptr);
  EXPECT_EQ(machine->resize_large(nullptr, block, std::size_t{PTRDIFF_MAX}), nullptr);
  EXPECT_EQ(machine.usable(block), 3 * kSpan);
  EXPECT_EQ(machine->resize_large(nullptr, block, 3 * kSpan), block);
  machine->free_large(nullptr, block);
  expect_whole(machine);
}

// ---- the limit --------------------------------------------------------------------------------------------------------

ArenaSettings limited(std::size_t bytes) {
  ArenaSettings settings = small_settings(std::size_t{64} << 20);
  settings.limit_bytes = bytes;
  return settings;
}

TEST(Core, Limit_BlocksOfEveryKind_StayWithinItAndServeAgain) {
  constexpr std::size_t kLimit = std::size_t{16} << 20;
  Machine machine(limited(kLimit));
  Thread thread(machine);
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{2000}, std::size_t{20'000}, 3 * kSpan, kLimit / 4}) {
    std::vector<void*> blocks;
    for (void* block = thread.allocate(bytes); block != nullptr; block = thread.allocate(bytes)) blocks.push_back(block);
    EXPECT_LE(blocks.size() * bytes, kLimit);
    EXPECT_GE(blocks.size() * bytes, kLimit * 3 / 4) << bytes;
    const Stats s = machine.stats();
    EXPECT_LE(s.small_span_bytes + s.run_bytes + s.direct_bytes + s.free_dirty_bytes, kLimit) << bytes;
    for (void* block : blocks) thread.free(block);
    machine->flush(*thread.cache());
  }
  thread.leave();
  expect_whole(machine);
}

// There is room for one of two direct blocks, and both are asked for while the other's mapping is made.
TEST(Core, Limit_TwoDirectBlocksAtTheSameTime_OneIsRefused) {
  constexpr std::size_t kLimit = std::size_t{16} << 20, kBytes = kLimit / 8 * 5;
  Machine machine(limited(kLimit));
  std::atomic<unsigned> mapping{0};
  machine.pages.before_map = [&] {
    ++mapping;
    for (int i = 0; i < 100 && mapping < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  void* blocks[2];
  std::vector<std::thread> threads;
  for (void*& block : blocks) {
    threads.emplace_back([&] {
      bool zero = false;
      block = machine->allocate_large(nullptr, kBytes, 1, zero);
    });
  }
  for (std::thread& thread : threads) thread.join();
  machine.pages.before_map = nullptr;
  EXPECT_EQ((blocks[0] != nullptr) + (blocks[1] != nullptr), 1);
  EXPECT_GE(machine.stats().lock_waits, 1U) << "one of them waited for the other";
  for (void* block : blocks) machine->free_large(nullptr, block);
  expect_whole(machine);
}

// A freed mapping is kept for the next large block: it counts, and goes when a small block needs its room.
TEST(Core, Limit_KeptMappings_GoBeforeASmallBlockIsRefused) {
  constexpr std::size_t kLimit = std::size_t{16} << 20;
  Machine machine(limited(kLimit));
  Thread thread(machine);
  void* const large = thread.allocate(test::kChunk + 4096);
  std::vector<void*> blocks;
  for (int i = 0; i < 6000; ++i) blocks.push_back(thread.allocate(2000));
  thread.free(large);
  ASSERT_GT(machine.stats().free_dirty_bytes, test::kChunk) << "it is kept";
  for (void* block = thread.allocate(2000); block != nullptr; block = thread.allocate(2000)) blocks.push_back(block);
  EXPECT_GE(blocks.size() * 2048, kLimit - 2 * kSpan);
  for (void* block : blocks) thread.free(block);
  thread.leave();
  expect_whole(machine);
}

TEST(Core, Limit_Resize_IsRefusedBeyondItAndTheBlockIsUntouched) {
  Machine machine(limited(std::size_t{8} << 20));
  bool zero = false;
  for (const std::size_t bytes : {5 * kSpan, std::size_t{3} << 20}) {
    Stamped block(machine->allocate_large(nullptr, bytes, 1, zero), bytes, 4);
    ASSERT_NE(block.memory, nullptr);
    EXPECT_EQ(machine->resize_large(nullptr, block.memory, std::size_t{9} << 20), nullptr);
    EXPECT_EQ(machine->resize_large(nullptr, block.memory, std::size_t{PTRDIFF_MAX} - 8191), nullptr);
    EXPECT_EQ(machine.usable(block.memory), bytes);
    EXPECT_TRUE(block.intact());
    machine->free_large(nullptr, block.memory);
  }
  expect_whole(machine);
}

TEST(Core, Limit_ResizeOutOfTheArenaWithinIt_MovesTheBlock) {
  if (test::emulated()) GTEST_SKIP() << "the emulator moves no pages";
  Machine machine(limited(std::size_t{8} << 20));
  bool zero = false;
  Stamped block(machine->allocate_large(nullptr, 5 * kSpan, 1, zero), 5 * kSpan, 4);
  ASSERT_NE(block.memory, nullptr);
  void* const moved = machine->resize_large(nullptr, block.memory, std::size_t{3} << 20);
  if (machine.pages.calls(FakePages::kMoveOut) != 0 && moved == nullptr) GTEST_SKIP() << "the kernel moves no pages";
  ASSERT_NE(moved, nullptr);
  block.memory = static_cast<unsigned char*>(moved);
  EXPECT_TRUE(block.intact());
  const Stats s = machine.stats();
  EXPECT_EQ(s.direct_bytes, std::size_t{3} << 20);
  EXPECT_EQ(s.run_bytes, 0U) << "the place in the arena is free";
  machine->free_large(nullptr, moved);
  expect_whole(machine);
}

// Mappings that are kept go before a large block, or one that grows, is refused.
TEST(Core, Limit_LargeBlocksBesideAKeptMapping_AreServed) {
  constexpr std::size_t kLimit = std::size_t{16} << 20, kKept = test::kChunk + SmallConfig::kPageBytes;
  Machine machine(limited(kLimit));
  bool zero = false;
  const auto keep_a_mapping = [&] {
    machine->free_large(nullptr, machine->allocate_large(nullptr, kKept, 1, zero));
    ASSERT_GE(machine.stats().free_dirty_bytes, kKept) << "it is kept";
  };
  void* block = machine->allocate_large(nullptr, kLimit / 2, 1, zero);
  ASSERT_NE(block, nullptr);
  keep_a_mapping();
  const std::size_t rest = kLimit / 2 - 2 * SmallConfig::kPageBytes;
  void* const other = machine->allocate_large(nullptr, rest, 1, zero);
  EXPECT_NE(other, nullptr);
  EXPECT_EQ(machine->allocate_large(nullptr, kKept, 1, zero), nullptr) << "nothing is kept any more";
  machine->free_large(nullptr, other);
  keep_a_mapping();
  block = machine->resize_large(nullptr, block, kLimit / 2 + rest);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(machine.usable(block), kLimit / 2 + rest);
  EXPECT_EQ(machine->resize_large(nullptr, block, 2 * kLimit), nullptr);
  EXPECT_EQ(machine.usable(block), kLimit / 2 + rest);
  machine->free_large(nullptr, block);
  EXPECT_EQ(machine->allocate_large(nullptr, ~std::size_t{0}, 1, zero), nullptr) << "more than any number of pages";
  expect_whole(machine);
}

// ---- memory is out ----------------------------------------------------------------------------------------------------

// The spans with free slots are in use by another thread, and fewer than a thread would share of its own accord.
TEST(Core, MemoryIsOut_FreeSlotsOfAnotherThreadsSpans_Serve) {
  constexpr std::size_t kFree = 10;
  Machine machine(small_settings(std::size_t{2} << 20), Machine::kBudget, 4);
  Thread first(machine), second(machine);
  std::vector<void*> blocks;
  while (void* block = first.allocate_class(kBig)) blocks.push_back(block);
  ASSERT_GT(blocks.size(), kFree);
  for (std::size_t i = 0; i < kFree; ++i) {
    first.free(blocks.back());
    blocks.pop_back();
  }
  machine->flush(*first.cache());
  for (std::size_t i = 0; i < kFree; ++i) {
    blocks.push_back(second.allocate_class(kBig));
    ASSERT_NE(blocks.back(), nullptr) << i;
  }
  EXPECT_EQ(second.allocate_class(kBig), nullptr);
  for (void* block : blocks) first.free(block);
  second.leave();
  first.leave();
  expect_whole(machine);
}

// ---- errors -----------------------------------------------------------------------------------------------------------

TEST(Core, Misuse_SlotFreedTwice_IsSeenAtTheDrainAndTheOthersAreSaved) {
  Machine machine;
  Thread thread(machine);
  void* victim = thread.allocate(64);
  void* other = thread.allocate(64);
  void* innocent = thread.allocate(64);
  thread.free(victim);
  thread.free(other);
  machine->flush(*thread.cache());
  const HeapErrors errors;
  thread.free(victim);
  thread.free(innocent);  // of the same word and batch
  machine->flush(*thread.cache());
  EXPECT_EQ(HeapErrors::seen, (std::vector<HeapErrors::Seen>{{base::HeapError::kDoubleFree, victim}}));
  EXPECT_TRUE(machine->check_invariants());
  thread.leave();
  (void)machine->trim();
  EXPECT_EQ(machine.stats().small_span_bytes, 0U) << "a slot of the batch is lost";
}

TEST(Core, Misuse_SlotTwiceInOneBatch_IsSeen) {
  Machine machine;
  Thread thread(machine);
  void* victim = thread.allocate(64);
  const HeapErrors errors;
  thread.free(victim);
  thread.free(victim);
  machine->flush(*thread.cache());
  EXPECT_EQ(HeapErrors::seen, (std::vector<HeapErrors::Seen>{{base::HeapError::kDoubleFree, victim}}));
  EXPECT_TRUE(machine->check_invariants());
}

// What a process looks at when it ends: caches of threads that sleep, its own included.
TEST(Core, Misuse_InCachesThatNobodyDrained_IsSeen) {
  const HeapErrors errors;  // the caches' ends tell it again
  Machine machine;
  Thread mine(machine), theirs(machine);
  char* const victim = static_cast<char*>(mine.allocate(64));
  char* const inside = static_cast<char*>(mine.allocate(1000));
  mine.free(victim);
  theirs.free(victim);
  theirs.free(inside + 16);
  std::vector<void*> room(machine->most_cached_slots());
  machine->report_misuse_in_caches(mine.cache(), room.data(), room.size(), [](std::int32_t) { return std::uint64_t{7}; });
  EXPECT_EQ(HeapErrors::seen, (std::vector<HeapErrors::Seen>{{base::HeapError::kDoubleFree, victim},
                                                             {base::HeapError::kInteriorPointer, inside + 16}}));
}

// The owner may run at any moment of the look: then its array and where it ends need not fit together, and nothing is told.
TEST(Core, Misuse_InTheCacheOfAThreadThatRuns_IsNotLookedAt) {
  const HeapErrors errors;  // the caches' ends tell it again
  Machine machine;
  Thread mine(machine), theirs(machine);
  void* const victim = theirs.allocate(64);
  theirs.free(victim);
  theirs.free(victim);
  const auto c = Classes::class_of(64);
  void** const top = theirs.cache()->top[c];
  std::vector<void*> room(std::size_t{1} << 22);  // as where there are very many threads
  for (void** const torn : {top, top + 1'000'000, theirs.cache()->bins[c].array - 1'000'000}) {
    std::uint64_t stamp = 1;
    machine->report_misuse_in_caches(mine.cache(), room.data(), room.size(), [&](std::int32_t) {
      theirs.cache()->top[c] = stamp == 1 ? torn : top;
      return stamp++;
    });
  }
  EXPECT_TRUE(HeapErrors::seen.empty());
  theirs.cache()->top[c] = top - 1;  // once is enough
}

TEST(Core, Misuse_MiddleOfASlot_IsSeenAtTheDrain) {
  Machine machine;
  Thread thread(machine);
  char* block = static_cast<char*>(thread.allocate(64));
  const HeapErrors errors;
  thread.free(block + 16);
  machine->flush(*thread.cache());
  EXPECT_EQ(HeapErrors::seen, (std::vector<HeapErrors::Seen>{{base::HeapError::kInteriorPointer, block + 16}}));
  thread.free(block);
  EXPECT_TRUE(machine->check_invariants());
}

// Behind the last slot of a span there may be room for an address that looks like one more slot.
TEST(Core, Misuse_TailOfASpan_IsNoSlot) {
  Machine machine;
  Thread thread(machine);
  for (const SizeClass c : AllClasses<Classes>{}) {
    const std::size_t bytes = Classes::slot_bytes(c), slots = kSpan / bytes;
    if (slots * bytes == kSpan) continue;
    char* slot = static_cast<char*>(thread.allocate_class(c));
    const auto span = reinterpret_cast<std::uintptr_t>(slot) / kSpan * kSpan;
    void* tail = reinterpret_cast<void*>(span + slots * bytes);
    {
      const HeapErrors errors;
      thread.free(tail);
      machine->flush(*thread.cache());
      EXPECT_EQ(HeapErrors::seen, (std::vector<HeapErrors::Seen>{{base::HeapError::kInteriorPointer, tail}})) << bytes;
    }
    thread.free(slot);
    ASSERT_TRUE(machine->check_invariants()) << bytes;
  }
}

TEST(Core, Misuse_LargeBlocks_MiddleTwiceAndForeign) {
  Machine machine(small_settings(std::size_t{4} << 20));
  bool zero = false;
  char* run = static_cast<char*>(machine->allocate_large(nullptr, 5 * kSpan, 1, zero));
  char* direct = static_cast<char*>(machine->allocate_large(nullptr, std::size_t{9} << 20, 1, zero));
  int local = 0;
  const HeapErrors errors;
  using base::HeapError;
  machine->free_large(nullptr, run + 16);
  machine->free_large(nullptr, run + kSpan);
  machine->free_large(nullptr, direct + 4096);
  machine->free_large(nullptr, &local);
  machine->free_large(nullptr, run);
  machine->free_large(nullptr, run);
  machine->free_large(nullptr, direct);
  machine->free_large(nullptr, direct);
  machine->free_large(nullptr,
                      reinterpret_cast<void*>(machine.arena().base() + (std::size_t{7} << 20)));  // never handed out
  ASSERT_EQ(HeapErrors::seen.size(), 7U);
  EXPECT_EQ(HeapErrors::seen[0], (HeapErrors::Seen{HeapError::kInteriorPointer, run + 16}));
  EXPECT_EQ(HeapErrors::seen[1], (HeapErrors::Seen{HeapError::kInteriorPointer, run + kSpan}));
  EXPECT_EQ(HeapErrors::seen[2], (HeapErrors::Seen{HeapError::kInteriorPointer, direct + 4096}));
  EXPECT_EQ(HeapErrors::seen[3], (HeapErrors::Seen{HeapError::kForeignPointer, &local}));
  EXPECT_EQ(HeapErrors::seen[4], (HeapErrors::Seen{HeapError::kDoubleFree, run}));
  EXPECT_EQ(HeapErrors::seen[5], (HeapErrors::Seen{HeapError::kForeignPointer, direct}));
  EXPECT_EQ(HeapErrors::seen[6].error, HeapError::kForeignPointer);
  expect_whole(machine);
}

TEST(Core, CheckInvariants_SlotBothCachedAndFree_IsSeen) {
  Machine machine;
  Thread thread(machine);
  void* slot = thread.allocate(64);
  const SizeClass c = machine.class_of(slot);
  thread.free(slot);
  EXPECT_TRUE(machine->check_invariants());
  pool::SlotGroups groups;
  pool::group_slots(machine.arena().geometry(c), &slot, 1, groups);
  (void)machine.arena().pool(c).put(groups.groups[0].word, groups.groups[0].bits);
  EXPECT_FALSE(machine->check_invariants());
  EXPECT_TRUE(machine.arena().pool(c).take_exactly(groups.groups[0].word, groups.groups[0].bits));
  thread.cache()->allowance += SmallConfig::kBudgetStepBytes;
  EXPECT_FALSE(machine->check_invariants()) << "budget out of nothing";
  thread.cache()->allowance -= SmallConfig::kBudgetStepBytes;
  EXPECT_TRUE(machine->check_invariants());
}

// ---- figures and everything together ----------------------------------------------------------------------------------

TEST(Core, Stats_KnownState_AddsUp) {
  Machine machine(small_settings(std::size_t{4} << 20));
  Thread thread(machine);
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(thread.allocate(1024));
  void* run = thread.allocate(5 * kSpan);
  void* direct = thread.allocate(std::size_t{9} << 20);
  const Stats s = machine.stats();
  const ClassStats& k = s.classes[Classes::class_of(1024).index() - 1];
  EXPECT_EQ(k.slot_bytes, 1024U);
  EXPECT_EQ(k.spans, 16U);
  EXPECT_EQ(k.slots, 1024U);
  EXPECT_EQ(k.free_slots + 1000 + thread.cache()->entries(Classes::class_of(1024)), k.slots);
  EXPECT_GT(k.refills, 10U);
  EXPECT_EQ(s.small_span_bytes, 16 * kSpan);
  EXPECT_EQ(s.run_bytes, 5 * kSpan);
  EXPECT_EQ(s.direct_bytes, std::size_t{9} << 20);
  EXPECT_EQ(s.reserved_bytes, s.committed_bytes + machine.arena().metadata_bytes());
  EXPECT_GE(s.committed_bytes, 21 * kSpan);
  EXPECT_EQ(s.cached_limit_bytes, thread.cache()->allowance);
  thread.free(run);
  thread.free(direct);
  for (void* block : blocks) thread.free(block);
  EXPECT_EQ(machine.stats().free_dirty_bytes, 5 * kSpan);
  thread.leave();
  EXPECT_GT(machine.stats().classes[Classes::class_of(1024).index() - 1].drains, 10U) << "a thread's figures outlive it";
  expect_whole(machine);
}

// Memory comes back after a spike without anybody asking, while the program goes on with a little.
TEST(Core, Spike_AfterTheDelay_GoesBackByItself) {
  Machine machine(small_settings(std::size_t{64} << 20));
  Thread thread(machine);
  std::vector<void*> blocks;
  for (int i = 0; i < 100'000; ++i) blocks.push_back(thread.allocate(200));
  const std::size_t peak = machine.stats().small_span_bytes;
  for (void* block : blocks) thread.free(block);
  for (int i = 0; i < 300; ++i) {
    FakeClock::pass(20);
    blocks.assign(200, nullptr);
    for (void*& block : blocks) block = thread.allocate(64);
    for (void* block : blocks) thread.free(block);
  }
  const Stats s = machine.stats();
  EXPECT_LT(s.small_span_bytes + s.free_dirty_bytes, peak / 10);
  EXPECT_GT(s.purged_bytes, peak * 8 / 10);
  EXPECT_TRUE(machine->check_invariants());
}

// The same for a mapping that was kept for the next large block.
TEST(Core, KeptMapping_AfterTheDelay_GoesBackByItself) {
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{100'000}}) {
    Machine machine;
    Thread thread(machine);
    void* const use = thread.allocate(4 * test::kChunk);  // so that the budget has room
    const std::size_t large = test::kChunk + SmallConfig::kPageBytes;
    thread.free(thread.allocate(large));
    const auto kept = [&] { return machine.arena().budget().figures().kept; };
    ASSERT_EQ(kept(), static_cast<std::int64_t>(large));
    for (int i = 0; i < 100; ++i) {
      FakeClock::pass(10);
      std::vector<void*> blocks(200);
      for (void*& block : blocks) block = thread.allocate(bytes);
      for (void* block : blocks) thread.free(block);
    }
    EXPECT_EQ(kept(), 0) << bytes;
    thread.free(use);
  }
}

// Threads with caches of their own and one without, blocks that wander, sizes of every kind, purges in between.
TEST(Core, Threads_RandomBlocksWander_ContentsHoldAndNothingIsLost) {
  Machine machine(small_settings(std::size_t{64} << 20), Machine::kBudget, 2);
  constexpr unsigned kThreads = 4, kShelf = 256;
  std::atomic<Stamped*> shelf[kShelf] = {};
  std::atomic<bool> wrong{false};
  const auto work = [&](unsigned t) {
    std::mt19937 random(t);
    const auto life = [&](Thread& thread) {
      for (int step = 0; step < 4000; ++step) {
        std::atomic<Stamped*>& place = shelf[random() % kShelf];
        Stamped* fresh = nullptr;
        if (random() % 3 != 0) {
          const unsigned kind = random() % 100;
          const std::size_t bytes = 1 + (kind < 80 ? random() % 1000 : (kind < 98 ? random() % 40'000 : random() % 400'000));
          void* block =
              random() % 8 == 0 ? thread.allocate_aligned(std::size_t{1} << random() % 18, bytes) : thread.allocate(bytes);
          if (block != nullptr) fresh = new Stamped(block, bytes, random());
        }
        if (Stamped* old = place.exchange(fresh); old != nullptr) {
          if (!old->intact()) wrong = true;
          thread.free(old->memory);
          delete old;
        }
        if (step % 512 == 0) (void)machine->trim();
        if (step % 512 == 128) machine->reclaim_all_runs(thread.cache());
        if (step % 512 == 256) (void)machine.stats();
        if (step % 512 == 384) (void)machine->purge_idle();
        if (step % 16 == 0) FakeClock::pass(5);
      }
    };
    for (int lives = 0; lives < 3; ++lives) {
      Thread thread(machine);
      life(thread);
    }
    Thread late(machine, Thread::Uncached{});
    life(late);
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  for (auto& thread : threads) thread.join();
  EXPECT_FALSE(wrong);
  Thread last(machine);
  for (auto& place : shelf)
    if (Stamped* old = place.load(); old != nullptr) {
      EXPECT_TRUE(old->intact());
      last.free(old->memory);
      delete old;
    }
  last.leave();
  expect_whole(machine);
}

}  // namespace
}  // namespace freehold::alloc
