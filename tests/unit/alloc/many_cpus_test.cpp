// SPDX-License-Identifier: MIT
// A machine of many CPUs, of which the engine only hears: the memory of a program that uses few of them does not depend on
// how many there are, at work and at rest.
#include <unordered_set>

#include "freehold/alloc/core.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/alloc/support.hpp"

namespace freehold::alloc {
namespace {

// Threads run where the test says.
struct Placed : sync::NativeAtomics {
  static inline unsigned cpu = 0;
  static unsigned cpu_id() noexcept { return cpu; }
};
using Machine = test::TestCore<Placed, NativeConfig>;
using Thread = test::Thread<Machine>;

struct Resident {
  std::size_t at_work, at_rest;
};

// Four threads allocate 10 MiB of blocks of many sizes, and each of them wanders over the CPUs; then they free them and end.
Resident resident_on(unsigned cpus) {
  constexpr unsigned kThreads = 4, kBlocks = 24'000;
  ArenaSettings settings = test::small_settings(std::size_t{1} << 30);
  settings.stripes = ArenaSettings::stripes_for(cpus);
  Machine machine(settings, NativeConfig::budget_bytes(cpus), cpus);
  std::vector<std::unique_ptr<Thread>> threads;
  for (unsigned i = 0; i < kThreads; ++i) threads.push_back(std::make_unique<Thread>(machine));
  std::vector<void*> blocks;
  for (unsigned i = 0; i < kBlocks; ++i) {
    Placed::cpu = (i * 7 + i / 1000) % cpus;
    const std::size_t bytes = i % 1000 == 0 ? 100'000 : 16 + i * 37 % 600;
    blocks.push_back(std::memset(threads[i % kThreads]->allocate(bytes), 1, bytes));
  }
  Resident resident{};
  resident.at_work = machine.pages.resident_bytes();
  for (unsigned i = 0; i < kBlocks; ++i) {
    Placed::cpu = i % cpus;
    threads[i / 3 % kThreads]->free(blocks[i]);
  }
  threads.clear();
  (void)machine->relief().trim();
  EXPECT_TRUE(machine->check_invariants());
  resident.at_rest = machine.pages.resident_bytes();
  return resident;
}

TEST(ManyCpus, FewThreads_MemoryAsOnOneCpu) {
  constexpr std::size_t kMore = 64 * 1024;
  const Resident one = resident_on(1);
  for (const unsigned cpus : {2U, 16U, 64U, 384U}) {
    const Resident many = resident_on(cpus);
    EXPECT_LE(many.at_work, one.at_work + one.at_work / 20 + kMore) << cpus << " CPUs";
    EXPECT_LE(many.at_rest, one.at_rest + one.at_rest / 20 + kMore) << cpus << " CPUs";
  }
}

// Slots that one thread has freed lie in few of many stripes: another finds them before memory grows.
TEST(ManyCpus, HalfIsFreedScattered_AnotherThreadTakesIt_MemoryStays) {
  constexpr std::size_t kBytes = 128, kBlocks = (std::size_t{64} << 20) / kBytes;
  for (const unsigned cpus : {2U, 16U}) {
    ArenaSettings settings = test::small_settings(std::size_t{1} << 30);
    settings.stripes = ArenaSettings::stripes_for(cpus);
    Machine machine(settings, NativeConfig::budget_bytes(cpus), cpus);
    Placed::cpu = 0;
    std::vector<void*> blocks;
    const auto take = [&](Thread& thread) { return std::memset(thread.allocate(kBytes), 1, kBytes); };
    Thread first(machine);
    for (std::size_t i = 0; i < kBlocks; ++i) blocks.push_back(take(first));
    for (std::size_t i = 0; i < kBlocks; i += 2) first.free(blocks[i]);
    const std::size_t before = machine.pages.resident_bytes();
    Placed::cpu = 1;
    Thread second(machine);
    for (std::size_t i = 0; i < kBlocks; i += 2) blocks[i] = take(second);
    EXPECT_LE(machine.pages.resident_bytes(), before + before / 8) << cpus << " CPUs";
    for (void* const block : blocks) second.free(block);
  }
}

// A thread's id says which spans are its own.
TEST(ManyCpus, NextThreadOnACpu_GetsTheIdOfTheOneThatEndedThere) {
  Machine machine(test::small_settings(), NativeConfig::kBudgetBytes, 4);
  const auto begin = [&](unsigned cpu) {
    Placed::cpu = cpu;
    return std::make_unique<Thread>(machine);
  };
  const auto first = begin(0), second = begin(1);
  auto third = begin(2);
  const std::uint32_t id = third->cache()->id;
  Placed::cpu = 3;
  third.reset();
  EXPECT_TRUE(machine.arena().slots().thread_ids().has_ended(id));
  const auto elsewhere = begin(2), there = begin(3), behind = begin(3);
  EXPECT_EQ(there->cache()->id, id);
  EXPECT_FALSE(machine.arena().slots().thread_ids().has_ended(id)) << "it lives again";
  std::set<std::uint32_t> ids;
  for (const auto* thread : {&first, &second, &elsewhere, &there, &behind}) ids.insert((*thread)->cache()->id);
  EXPECT_EQ(ids.size(), 5U) << "no two at once";
}

// Two memory nodes, of two CPUs each.
struct TwoNodes : NativeConfig {
  static unsigned node() noexcept { return Placed::cpu / 2; }
};
using TwoNodeMachine = test::TestCore<Placed, TwoNodes>;

// Threads begin where their creator runs, and pin themselves afterwards.
TEST(ManyCpus, EachThreadBeganOnOneNode_TheNodeWhereItLooksForMemoryCounts) {
  TwoNodeMachine machine(test::small_settings(), NativeConfig::kBudgetBytes, 4);
  const auto& ids = machine.arena().slots().thread_ids();
  using Worker = test::Thread<TwoNodeMachine>;
  Placed::cpu = 0;
  Worker first(machine);
  Placed::cpu = 2;
  first.free(first.allocate(512));
  EXPECT_EQ(ids.node_mask(), 0U) << "one thread alone keeps its spans";
  Placed::cpu = 0;
  Worker second(machine);
  Placed::cpu = 2;
  second.free(second.allocate(512));
  EXPECT_EQ(ids.node_mask(), 1U);
  EXPECT_TRUE(ids.is_of_node(second.cache()->id, 1));
  Placed::cpu = 1;
  first.free(first.allocate(640));
  EXPECT_TRUE(ids.is_of_node(first.cache()->id, 0));
}

// Free slots of the other node are left to its threads, also by the caches of a CPU.
TEST(ManyCpus, CachesOfACpu_LookForSlotsOnTheirNode) {
  constexpr std::size_t kBytes = 1024, kBlocks = 4 * 64;  // four spans
  TwoNodeMachine machine(test::small_settings(), NativeConfig::kBudgetBytes, 4);
  Placed::cpu = 2;
  test::Thread<TwoNodeMachine> there(machine);
  Placed::cpu = 0;
  test::Thread<TwoNodeMachine> here(machine);
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < kBlocks; ++i) blocks.push_back(here.allocate(kBytes));
  std::unordered_set<std::uintptr_t> spans;
  for (std::size_t i = 0; i < kBlocks; i += 2) {
    spans.insert(reinterpret_cast<std::uintptr_t>(blocks[i]) >> NativeConfig::kSpanShift);
    here.free(blocks[i]);
  }
  here.leave();
  const auto is_of_node_0 = [&](unsigned cpu) {
    Placed::cpu = cpu;
    void* block = nullptr;
    EXPECT_EQ(machine->take_batch(machine.class_of(blocks[1]), &block, 1, cpu), 1U);
    return spans.contains(reinterpret_cast<std::uintptr_t>(block) >> NativeConfig::kSpanShift);
  };
  EXPECT_FALSE(is_of_node_0(2));
  EXPECT_FALSE(is_of_node_0(3));
  EXPECT_TRUE(is_of_node_0(0));
  EXPECT_TRUE(is_of_node_0(1));
}

// A span goes back to the threads of the node that touched its pages first, whoever used it since.
TEST(ManyCpus, WhollyFreeSpan_GoesToThreadsOfItsNode) {
  constexpr std::size_t kBytes = 512, kOther = 640;
  TwoNodeMachine machine(test::small_settings(), NativeConfig::kBudgetBytes, 4);
  using Worker = test::Thread<TwoNodeMachine>;
  const auto span_of = [](const void* block) { return reinterpret_cast<std::uintptr_t>(block) >> NativeConfig::kSpanShift; };
  Worker first(machine);
  Placed::cpu = 2;
  Worker second(machine);
  ASSERT_TRUE(machine.arena().slots().thread_ids().is_of_node(second.cache()->id, 1));
  Placed::cpu = 0;
  ASSERT_FALSE(machine.arena().slots().thread_ids().is_of_node(first.cache()->id, 0));
  void* const block = first.allocate(kBytes);
  EXPECT_TRUE(machine.arena().slots().thread_ids().is_of_node(first.cache()->id, 0)) << "it began before there were nodes";
  const std::uintptr_t span = span_of(block);
  first.free(block);
  first.leave();
  Placed::cpu = 2;
  EXPECT_NE(span_of(second.allocate(kOther)), span) << "while memory may be free";
  Placed::cpu = 1;
  Worker third(machine);
  EXPECT_EQ(span_of(third.allocate(kOther)), span);
}

}  // namespace
}  // namespace freehold::alloc
