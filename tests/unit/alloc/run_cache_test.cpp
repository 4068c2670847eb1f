// SPDX-License-Identifier: MIT
// The free runs that threads keep for themselves (alloc/run_cache.hpp), through the core that uses them.
#include "freehold/alloc/large/run_cache.hpp"

#include <atomic>
#include <optional>
#include <thread>

#include "tests/support/test.hpp"
#include "tests/unit/alloc/support.hpp"

namespace freehold::alloc {
namespace {

using test::expect_whole;
using test::FakeClock;
using test::kChunk;
using test::kPagesPerSpan;
using test::kSpan;
using test::limited;
using test::small_settings;
using test::SmallConfig;
using Machine = test::TestCore<>;
using Thread = test::Thread<Machine>;

// Spans that the thread keeps, and those among them that may hold pages.
struct Kept {
  unsigned free = 0, dirty = 0, words = 0;
};
Kept kept_by(Thread& thread) {
  Kept kept;
  if (thread.cache()->runs == nullptr) return kept;
  thread.cache()->runs->for_each([&](std::uint32_t, std::uint64_t free, std::uint64_t dirty) {
    kept.free += static_cast<unsigned>(std::popcount(free));
    kept.dirty += static_cast<unsigned>(std::popcount(dirty));
    ++kept.words;
  });
  return kept;
}

bool is_sound(Machine& machine) { return machine->check_invariants() && machine->check_accounts(); }

// No line of anybody else: what the chunks and the budget say does not change.
TEST(RunCache, PairsOfMallocAndFree_NeitherChunksNorBudgetAreWritten) {
  Machine machine;
  Thread thread(machine);
  thread.free(thread.allocate(3 * kSpan));
  const auto chunk = [&] { return machine.arena().free_dirty_bytes() + machine.arena().span_count(); };
  const auto before = chunk();
  const auto told = machine.arena().budget().figures();
  for (int i = 0; i < 1000; ++i) thread.free(thread.allocate((1 + i % 3) * kSpan));
  EXPECT_EQ(chunk(), before);
  EXPECT_EQ(machine.arena().budget().figures().runs, told.runs);
  EXPECT_EQ(machine.arena().budget().figures().dirty, told.dirty);
  thread.leave();
  expect_whole(machine);
}

// ---- the mapping of the last direct block -----------------------------------------------------------------------------

constexpr std::size_t kMapped = kChunk + kSpan;

// As the engine serves them.
void* map(Machine& machine, Thread& thread, std::size_t bytes = kMapped) {
  {
    const Thread::Inside inside(thread);
    if (void* const block = machine->kept().allocate_mapped(*thread.cache(), bytes); block != nullptr) return block;
  }
  return thread.allocate(bytes);
}
void unmap(Machine& machine, Thread& thread, void* block) {
  {
    const Thread::Inside inside(thread);
    if (machine->free_mapped(*thread.cache(), block)) return;
  }
  thread.free(block);
}

TEST(RunCache, DirectBlockFreedAndAskedForAgain_NoLockAndNoBudget) {
  Machine machine;
  Thread thread(machine);
  void* const block = map(machine, thread);
  const auto told = machine.arena().budget().figures();
  for (int i = 0; i < 10; ++i) {
    unmap(machine, thread, block);
    EXPECT_EQ(machine.arena().budget().figures().direct, told.direct) << "as if it were in use";
    EXPECT_EQ(machine.stats().direct_blocks, 0U);
    EXPECT_EQ(machine.stats().direct_bytes, 0U);
    EXPECT_EQ(machine.stats().kept_bytes, kMapped);
    EXPECT_EQ(machine->blocks().large_bytes(block), 0U);
    EXPECT_EQ(machine->blocks().block_around(block).start, nullptr);
    machine->blocks().for_each_block([](auto place) { ADD_FAILURE() << place.start << " is in use"; });
    EXPECT_FALSE(machine->free_mapped(*thread.cache(), block)) << "twice";
    EXPECT_EQ(map(machine, thread, kMapped - i), block);
    EXPECT_EQ(machine.stats().direct_blocks, 1U);
  }
  EXPECT_TRUE(is_sound(machine));
  unmap(machine, thread, block);
  void* const longer = map(machine, thread, 2 * kMapped);
  EXPECT_EQ(machine.stats().kept_bytes, 0U) << "its pages served";
  unmap(machine, thread, longer);
  machine->flush(*thread.cache());
  EXPECT_EQ(machine.arena().budget().figures().direct, 0);
  thread.leave();
  expect_whole(machine);
}

// Another thread frees the block; another mapping, and then another record, have its place.
TEST(RunCache, LastDirectBlockFreedByAnother_ItsRecordIsNotTakenForAnothers) {
  Machine machine;
  Thread thread(machine), other(machine, Thread::Uncached{});
  void* const in_use = other.allocate(32 * kMapped);  // so that much may be kept
  void* const first = other.allocate(kMapped);
  void* const last = map(machine, thread);
  other.free(last);
  other.free(first);
  void* const again = other.allocate(kMapped);
  EXPECT_EQ(again, last) << "the record of `first`";
  unmap(machine, thread, again);
  EXPECT_EQ(machine.stats().direct_blocks, 1U);
  other.free(in_use);
  EXPECT_TRUE(is_sound(machine));
  thread.leave();
  expect_whole(machine);
}

// The record of a block of the first thread's becomes that of one of the second's: both allocated it last.
TEST(RunCache, DirectBlockFreedByTwoThreads_TheSecondFreeIsRefused) {
  Machine machine;
  Thread first(machine), second(machine), other(machine, Thread::Uncached{});
  other.free(map(machine, first));
  void* const block = map(machine, second);
  ASSERT_TRUE(machine->free_mapped(*first.cache(), block));
  EXPECT_FALSE(machine->free_mapped(*second.cache(), block));
  first.leave();
  second.leave();
  expect_whole(machine);
}

TEST(RunCache, DirectBlocksOfManyThreadsInUse_TakeNothingOfWhatThreadsMayKeep) {
  Machine machine;
  std::vector<std::unique_ptr<Thread>> threads;
  std::vector<void*> blocks;
  for (int t = 0; t < 20; ++t) {
    threads.push_back(std::make_unique<Thread>(machine));
    blocks.push_back(map(machine, *threads.back()));
  }
  EXPECT_EQ(machine->kept().reserved_words(), 0);
  Thread other(machine, Thread::Uncached{});
  for (void* block : blocks) other.free(block);
  threads.clear();
  expect_whole(machine);
}

// Another thread has closed what the thread keeps while it asks for a longer block.
TEST(RunCache, MappingKeptWhileClosed_IsFoundAfterwards) {
  Machine machine;
  Thread thread(machine);
  unmap(machine, thread, map(machine, thread));
  thread.cache()->runs_closed.store(1);
  void* const longer = map(machine, thread, 2 * kMapped);
  thread.cache()->runs_closed.store(0);
  EXPECT_TRUE(thread.cache()->may_have_mapping);
  unmap(machine, thread, longer);
  unmap(machine, thread, map(machine, thread));
  thread.leave();
  expect_whole(machine);
}

TEST(RunCache, MappingKept_GoesAfterTheDelayAndWhereMemoryIsShort) {
  for (const bool is_short : {false, true}) {
    Machine machine;
    Thread thread(machine), other(machine);
    unmap(machine, thread, map(machine, thread));
    if (is_short) {
      (void)machine->arena().purge().set_limit(kMapped + kSpan);
      void* const block = other.allocate(kMapped + kSpan);
      EXPECT_NE(block, nullptr);
      other.free(block);
    } else {
      for (int i = 0; i < 2; ++i) {
        FakeClock::pass(100'000);
        for (int call = 0; call < 64; ++call) thread.free(thread.allocate(3 * kSpan));
      }
    }
    EXPECT_EQ(thread.cache()->runs->kept_block.load(), nullptr);
    EXPECT_TRUE(is_short || machine.stats().kept_bytes == 0);
    thread.leave();
    other.leave();
    expect_whole(machine);
  }
}

TEST(RunCache, MappingsKept_BoundedForAll) {
  constexpr unsigned kCpus = 1, kThreads = 20;
  Machine machine(small_settings(std::size_t{256} << 20), Machine::kBudget, kCpus);
  std::vector<std::unique_ptr<Thread>> threads;
  unsigned kept = 0;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.push_back(std::make_unique<Thread>(machine));
    unmap(machine, *threads.back(), map(machine, *threads.back()));
    kept += threads.back()->cache()->runs->kept_block.load() != nullptr ? 1 : 0;
  }
  EXPECT_EQ(kept, kCpus * SmallConfig::kReservedWords);
  EXPECT_TRUE(is_sound(machine));
  threads.clear();
  expect_whole(machine);
}

// Blocks go from thread to thread while another one reclaims what they keep.
TEST(RunCache, MappingsOfThreadsThatAreReclaimed_NoBlockTwice) {
  constexpr unsigned kThreads = 3, kRounds = 20'000;
  Machine machine;
  std::atomic<unsigned> running{kThreads};
  std::atomic<unsigned*> passed{nullptr};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Thread thread(machine);
      for (unsigned i = 0; i < kRounds; ++i) {
        auto* block = static_cast<unsigned*>(map(machine, thread, kMapped + (i % 64 == 0 ? kSpan : 0)));
        *block = t * kRounds + i;
        if (*block != t * kRounds + i) ADD_FAILURE() << "another thread has it, too";
        if (i % 5 == 0) block = passed.exchange(block);
        if (block != nullptr) unmap(machine, thread, block);
      }
      thread.leave();
      --running;
    });
  while (running != 0) machine->relief().reclaim_all_runs(nullptr);
  for (auto& thread : threads) thread.join();
  Thread last(machine, Thread::Uncached{});
  last.free(passed.load());
  EXPECT_TRUE(is_sound(machine));
  expect_whole(machine);
}

// ---- runs -------------------------------------------------------------------------------------------------------------

// A search in vain is remembered, until spans are freed there.
TEST(RunCache, FreedAfterASearchInVain_IsFound) {
  Machine machine;
  Thread thread(machine);
  void *const a = thread.allocate(2 * kSpan), *const b = thread.allocate(2 * kSpan), *const behind = thread.allocate(kSpan);
  thread.free(a);
  void* const longer = thread.allocate(4 * kSpan);
  EXPECT_GT(longer, behind);
  thread.free(b);
  EXPECT_EQ(thread.allocate(4 * kSpan), a) << "where a and b were";
  for (void* block : {a, behind, longer}) thread.free(block);
  thread.leave();
  expect_whole(machine);
}

// As buffers that grow from class to class until they are runs.
TEST(RunCache, SpansOfClassesThatBecameFree_ServeBeforeCleanMemory) {
  for (const bool kept : {false, true}) {
    Machine machine;
    Thread thread(machine);
    void* blocks[8 * kSpan / (16 * 1024)];
    for (void*& block : blocks) block = thread.allocate(16 * 1024);
    void* const run = thread.allocate(kSpan);  // from now on the thread keeps the spans behind it
    for (void* const block : blocks) thread.free(block);
    machine->flush(*thread.cache());
    bool zero = false;
    void* const next = machine->large().allocate_large(kept ? thread.cache() : nullptr, 3 * kSpan, 1, zero);
    EXPECT_LT(next, run) << "where blocks of a class were";
    EXPECT_EQ(machine.stats().small_span_bytes, 0U);
    EXPECT_TRUE(machine->check_invariants());
    EXPECT_TRUE(machine->check_accounts());
    thread.free(next);
    thread.free(run);
    thread.leave();
    expect_whole(machine);
  }
}

// The thread keeps clean runs, and another chunk has spans that hold pages.
TEST(RunCache, DirtySpansOfOtherChunks_ServeBeforeCleanOnesThatAreKept) {
  for (const bool alone : {true, false}) {
    Machine machine;
    std::optional<Thread> other;
    if (!alone) other.emplace(machine);
    Thread thread(machine), uncached(machine, Thread::Uncached{});
    void* const run = thread.allocate(kSpan);  // from now on the thread keeps the spans behind it
    void* const dirty = uncached.allocate(3 * kSpan);
    uncached.free(dirty);
    const unsigned kept = kept_by(thread).free;
    ASSERT_GE(kept, 3U);
    void* const next = thread.allocate(3 * kSpan);
    EXPECT_EQ(next, dirty);
    EXPECT_EQ(kept_by(thread).free, kept);
    EXPECT_TRUE(is_sound(machine));
    thread.free(next);
    thread.free(run);
    thread.leave();
    if (other) other->leave();
    expect_whole(machine);
  }
}

TEST(RunCache, Words_BoundedForAThreadAndForAll) {
  constexpr unsigned kCpus = 1, kThreads = 6;
  Machine machine(small_settings(std::size_t{256} << 20), Machine::kBudget, kCpus);
  std::vector<std::unique_ptr<Thread>> threads;
  std::vector<std::pair<Thread*, void*>> blocks;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.push_back(std::make_unique<Thread>(machine));
    for (int i = 0; i < 8; ++i) blocks.emplace_back(threads[t].get(), threads[t]->allocate(7 * kSpan));
  }
  unsigned words = 0;
  for (auto& thread : threads) {
    EXPECT_LE(kept_by(*thread).words, 4U);
    words += kept_by(*thread).words;
  }
  EXPECT_LE(words, kCpus * SmallConfig::kReservedWords);
  EXPECT_GT(words, 4U);
  EXPECT_TRUE(is_sound(machine));
  for (auto [thread, block] : blocks) thread->free(block);
  threads.clear();
  expect_whole(machine);
  // A thread that left has given its words back.
  Thread late(machine);
  std::vector<void*> more;
  for (int i = 0; i < 8; ++i) more.push_back(late.allocate(7 * kSpan));
  EXPECT_EQ(kept_by(late).words, 4U);
  for (void* block : more) late.free(block);
  late.leave();
  expect_whole(machine);
}

TEST(RunCache, ThreadEndsWithFreeSpans_ThePurgerHearsOfThem) {
  Machine machine;
  Thread thread(machine);
  thread.free(thread.allocate(6 * kSpan));
  for (int i = 0; i < 4 && machine.arena().purge().purge_idle(FakeClock::now()) != Due::kNothing; ++i) FakeClock::pass(1000);
  ASSERT_FALSE(machine.arena().due().something()) << "the arena has nothing";
  thread.leave();
  EXPECT_TRUE(machine.arena().due().something());
  FakeClock::pass(1000);
  for (int i = 0; i < 4 && machine->relief().purge_idle() != Due::kNothing; ++i) FakeClock::pass(1000);
  EXPECT_EQ(machine.stats().free_dirty_bytes, 0U);
  expect_whole(machine);
}

TEST(RunCache, MemoryIsShort_WhatOthersKeepServes) {
  Machine machine(small_settings(std::size_t{4} << 20));
  Thread hoarder(machine), other(machine);
  std::vector<void*> blocks;
  for (void* block = hoarder.allocate(4 * kSpan); block != nullptr && machine.arena().span_count() != 0;
       block = hoarder.allocate(4 * kSpan)) {
    if (!machine.class_of(block).is_slot() && machine->blocks().large_bytes(block) == 0) break;
    blocks.push_back(block);
    if (blocks.size() == 4 * SmallConfig::kChunkSpans / 4) break;
  }
  for (void* block : blocks) hoarder.free(block);
  void* const mine = other.allocate(12 * kSpan);
  EXPECT_NE(mine, nullptr);
  const auto offset = reinterpret_cast<std::uintptr_t>(mine) - machine.arena().base();
  EXPECT_LT(offset, std::size_t{4} << 20) << "the arena's, not a separate mapping";
  other.free(mine);
  hoarder.leave();
  other.leave();
  expect_whole(machine);
}

// A system that refuses to fence other threads: it cannot be known whether a thread works on what it keeps.
struct RefusesToFence : sync::NativeAtomics {
  static inline bool refuses = false;
  static bool heavy_fence() noexcept { return !refuses && sync::NativeAtomics::heavy_fence(); }
};
TEST(RunCache, OtherThreadsCannotBeFenced_TheyKeepWhatTheyHave) {
  if (!RefusesToFence::may_fence_heavily()) GTEST_SKIP() << "the system has no membarrier";
  test::TestCore<RefusesToFence> machine;
  test::Thread sleeping(machine);
  sleeping.free(sleeping.allocate(6 * kSpan));
  const auto kept = [&] {
    std::uint64_t bits = 0;
    sleeping.cache()->runs->for_each([&](std::uint32_t, std::uint64_t free, std::uint64_t) { bits |= free; });
    return bits;
  };
  const std::uint64_t before = kept();
  EXPECT_NE(before, 0U);
  RefusesToFence::refuses = true;
  machine->relief().reclaim_all_runs(nullptr);
  RefusesToFence::refuses = false;
  EXPECT_EQ(kept(), before);
  EXPECT_EQ(sleeping.cache()->runs_closed, 0U) << "its owner may go on";
  sleeping.leave();
  EXPECT_TRUE(machine->check_invariants());
}

TEST(RunCache, UnderALimit_FreedRunsAreNobodysLoss) {
  constexpr std::size_t kLimit = std::size_t{8} << 20;
  for (const bool later : {false, true}) {
    Machine machine(limited(later ? 0 : kLimit));
    Thread thread(machine), other(machine);
    for (int round = 0; round < 2; ++round) {
      std::vector<void*> blocks;
      for (int i = 0; i < 5; ++i) blocks.push_back(thread.allocate(8 * kSpan));
      for (void* block : blocks) thread.free(block);
    }
    if (later) (void)machine->arena().purge().set_limit(kLimit);
    for (const std::size_t bytes : {std::size_t{1000}, 5 * kSpan, kLimit / 4}) {
      std::vector<void*> blocks;
      for (void* block = other.allocate(bytes); block != nullptr; block = other.allocate(bytes)) blocks.push_back(block);
      EXPECT_GE(blocks.size() * bytes, kLimit * 3 / 4) << bytes << " later " << later;
      EXPECT_LE(blocks.size() * bytes, kLimit) << bytes;
      for (void* block : blocks) other.free(block);
      machine->flush(*other.cache());
    }
    thread.leave();
    other.leave();
    expect_whole(machine);
  }
}

// Runs that the thread kept from before the limit leave no room for a direct block, until they go back.
TEST(RunCache, LimitSetWhileDirtySpansAreKept_ADirectBlockGetsTheirRoom) {
  constexpr std::size_t kLimit = 4 * test::kChunk;
  Machine machine;
  Thread thread(machine);
  std::vector<void*> runs;
  for (int i = 0; i < 14; ++i) runs.push_back(thread.allocate(3 * kSpan));  // as many as have been reported to the budget
  for (int i = 0; i < 4; ++i) {
    thread.free(runs.back());
    runs.pop_back();
  }
  const unsigned kept = kept_by(thread).dirty;
  ASSERT_GE(kept, 9U);
  (void)machine->arena().purge().set_limit(kLimit);
  const std::size_t rest = kLimit - (runs.size() * 3 + 2) * kSpan;
  void* const block = thread.allocate(rest);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(machine.stats().direct_bytes, rest);
  EXPECT_EQ(kept_by(thread).dirty, 0U);
  EXPECT_EQ(thread.allocate(3 * kSpan), nullptr) << "beyond the limit";
  thread.free(block);
  for (void* run : runs) thread.free(run);
  thread.leave();
  expect_whole(machine);
}

// A fork from a handler during an entry leaves a child whose thread was closed out by one that is not there.
TEST(RunCache, ChildOfAForkAmidAnEntry_ForgetsWhatWasClosed) {
  Machine machine;
  Thread thread(machine);
  thread.free(thread.allocate(2 * kSpan));
  thread.cache()->runs_closed.store(1);
  machine->kept().after_fork_amid_an_entry(thread.cache());
  EXPECT_EQ(thread.cache()->runs, nullptr);
  void* const block = thread.allocate(2 * kSpan);
  EXPECT_NE(block, nullptr);
  thread.free(block);
  EXPECT_GT(kept_by(thread).free, 0U);
  thread.leave();
}

}  // namespace
}  // namespace freehold::alloc
