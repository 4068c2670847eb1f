// SPDX-License-Identifier: MIT
#include "freehold/alloc/core.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/alloc/support.hpp"
#include "tests/unit/hooked_atomics.hpp"

namespace freehold::alloc {
namespace {

using test::expect_whole;
using test::FakeClock;
using test::kSpan;
using test::small_settings;
using test::SmallConfig;
using test::Stamped;
using Machine = test::TestCore<>;
using Thread = test::Thread<Machine>;
using Classes = SizeClasses;

constexpr SizeClass kTiny = Classes::class_of(16);
constexpr SizeClass kBig = Classes::class_of(16 * 1024);

// ---- a thread's bins --------------------------------------------------------------------------------------------------

// `n` blocks of the class, and all of them free again.
void use_and_free(Thread& thread, SizeClass c, unsigned n) {
  std::vector<void*> blocks;
  for (unsigned i = 0; i < n; ++i) blocks.push_back(thread.allocate_class(c));
  for (void* block : blocks) thread.free(block);
}

TEST(Core, Drain_BinThatIsRefilledBetween_HoldsTheWholeBurst) {
  Machine machine(small_settings(), std::size_t{64} << 20);
  Thread thread(machine);
  const SizeClass c = Classes::class_of(96);
  const auto& bin = thread.cache()->bins[c];
  use_and_free(thread, c, 1000);
  EXPECT_EQ(bin.capacity, SmallConfig::kMaxSlots) << "once is no burst that comes again";
  for (int i = 0; i < 4; ++i) use_and_free(thread, c, 1000);
  EXPECT_EQ(bin.capacity, SmallConfig::kBurstSlots);
  const std::uint64_t refills = bin.refills.load(), drains = bin.drains.load();
  for (int i = 0; i < 4; ++i) use_and_free(thread, c, 500);
  EXPECT_EQ(bin.refills.load(), refills);
  EXPECT_EQ(bin.drains.load(), drains);
  use_and_free(thread, Classes::class_of(32 * 1024), 100);
  EXPECT_EQ(thread.cache()->bins[Classes::class_of(32 * 1024)].capacity, SmallConfig::kMinSlots);
  thread.leave();
  expect_whole(machine);
}

TEST(Core, Drain_ThreadThatOnlyFrees_HoldsNoBurst) {
  Machine machine(small_settings(), std::size_t{64} << 20);
  Thread producer(machine), consumer(machine);
  const SizeClass c = Classes::class_of(96);
  for (int i = 0; i < 10'000; ++i) consumer.free(producer.allocate_class(c));
  EXPECT_EQ(consumer.cache()->bins[c].capacity, SmallConfig::kMaxSlots);
  producer.leave();
  consumer.leave();
  expect_whole(machine);
}

// ---- the common budget ------------------------------------------------------------------------------------------------

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
  EXPECT_EQ(machine.stats().peak_threads, 1U);
  expect_whole(machine);
}

TEST(Core, Fork_ChildAdoptsOrphans_ButNotOneCaughtInside) {
  Machine machine;
  Thread mine(machine), idle(machine), busy(machine);
  for (Thread* thread : {&mine, &idle, &busy}) {
    std::vector<void*> blocks;
    for (int i = 0; i < 40; ++i) blocks.push_back(thread->allocate(64));
    for (void* block : blocks) thread->free(block);
  }
  busy.cache()->inside.store(1);
  machine->after_fork_in_child(mine.cache());
  EXPECT_EQ(machine->registry().threads(), 2U);
  EXPECT_TRUE(machine->check_invariants());
  EXPECT_NE(mine.allocate(64), nullptr);
  // `idle` is gone with its thread; `busy` would be in a real child.
  busy.cache()->inside.store(0);
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
    if (changed == &cache->inside) return;
    ++looks;
    marked += cache->inside.load();
  };
  leaving.leave();
  test::HookedAtomics::hook = nullptr;
  EXPECT_GT(looks, 10U);
  EXPECT_EQ(marked, looks);
  mine.leave();
  EXPECT_TRUE(machine->check_invariants());
}

// ---- memory is out ----------------------------------------------------------------------------------------------------

// The spans with free slots are in use by another thread, and fewer than a thread would share unasked.
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

// Threads with caches of their own and one without, blocks that wander, grow and move, sizes of every kind, of which a
// working set is larger than the runs that threads may keep, and purges in between.
TEST(Core, Threads_RandomBlocksWander_ContentsHoldAndNothingIsLost) {
  Machine machine(small_settings(std::size_t{128} << 20), Machine::kBudget, 2);
  constexpr unsigned kThreads = 4, kShelf = 256;
  std::atomic<Stamped*> shelf[kShelf] = {};
  std::atomic<bool> wrong{false}, stop{false};
  std::atomic<unsigned> moves{0};
  std::thread purger([&] {
    while (!stop) {
      (void)machine->relief().purge_idle();
      machine->relief().reclaim_all_runs(nullptr);
      std::this_thread::yield();
    }
  });
  const auto work = [&](unsigned t) {
    std::mt19937 random(t);
    const auto life = [&](Thread& thread) {
      for (int step = 0; step < 2500; ++step) {
        std::atomic<Stamped*>& place = shelf[random() % kShelf];
        Stamped* fresh = nullptr;
        if (random() % 3 != 0) {
          const unsigned kind = random() % 100;
          const std::size_t bytes =
              1 + (kind < 70 ? random() % 1000 : (kind < 90 ? random() % 40'000 : random() % (10 * kSpan)));
          void* block =
              random() % 8 == 0 ? thread.allocate_aligned(std::size_t{1} << random() % 18, bytes) : thread.allocate(bytes);
          if (block != nullptr) fresh = new Stamped(block, bytes, random());
          const std::size_t more = bytes + kSpan * (random() % 3);
          if (void* const moved = bytes > Classes::kMaxBytes && fresh != nullptr ? thread.resize(block, more) : nullptr;
              moved != nullptr) {
            fresh->memory = static_cast<unsigned char*>(moved);
            if (!fresh->intact()) wrong = true;
            fresh->bytes = more;
            fresh->write(bytes);
          }
        }
        if (Stamped* old = place.exchange(fresh); old != nullptr) {
          if (!old->intact()) wrong = true;
          if (thread.cache() != nullptr && machine->moving().is_worth(*thread.cache(), old->memory)) {
            auto* const moved = static_cast<unsigned char*>(thread.allocate_class(machine.class_of(old->memory)));
            if (moved == nullptr || !std::less<>()(moved, old->memory)) wrong = true;
            std::memcpy(moved, old->memory, old->bytes);
            thread.free(std::exchange(old->memory, moved));
            ++moves;
            if (!old->intact()) wrong = true;
          }
          thread.free(old->memory);
          delete old;
        }
        if (step % 512 == 0) (void)machine->relief().trim();
        if (step % 512 == 256) (void)machine.stats();
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
  stop = true;
  purger.join();
  EXPECT_FALSE(wrong);
  EXPECT_GT(moves, 0U);
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
