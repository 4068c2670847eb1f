// SPDX-License-Identifier: MIT
// A machine of many CPUs, of which the engine only hears: the memory of a program that uses few of them does not depend on
// how many there are, at work and at rest.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "freehold/alloc/core.hpp"
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
  (void)machine->trim();
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

}  // namespace
}  // namespace freehold::alloc
