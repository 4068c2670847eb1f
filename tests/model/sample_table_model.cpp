// SPDX-License-Identifier: MIT
// profile::SampleTable on the simulated machine. Blocks that share a place are inserted, handed to another thread, found and
// removed there, while others come and go beside them. Oracle: a block's sample is found by the thread that has the block
// until it is removed, once; a block that is not sampled is never found; at rest the sums are those of what is there. A
// reader that takes no lock, as those outside the process, copies whole samples between two changes.
#include "freehold/profile/sample_table.hpp"

#include <gtest/gtest.h>

#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/expect_ok.hpp"

namespace freehold::profile {
namespace {

using sim::Failure;
using sim::Options;
using sim::Result;
using sim::SimAtomics;

using Table = SampleTable<SimAtomics>;
constexpr std::size_t kCount = 16;
constexpr std::uintptr_t kSpan = std::uintptr_t{1} << Table::kBlockShift;

// The i-th block; all of them have the same first place.
constexpr std::uintptr_t block(std::uintptr_t i) { return (3 + kCount * i) * kSpan; }
constexpr Sample sample(std::uintptr_t i) { return {block(i), 10 * i, 10 * i, 1'000, static_cast<std::uint32_t>(i)}; }

template <std::memory_order kHandOver>
struct World {
  World() { table.init(places, kCount, log); }

  // How a program gives a block to another thread.
  void give(std::uintptr_t i) { given.store(i, kHandOver); }
  std::uintptr_t taken() { return given.load(std::memory_order_acquire); }

  void find(std::uintptr_t i) {
    Sample found;
    SIM_CHECK(table.find(block(i), found));
    SIM_CHECK(found.bytes == 10 * i && found.origin == i);
  }
  void remove(std::uintptr_t i) {
    Sample found;
    SIM_CHECK(table.remove(block(i), found));
    SIM_CHECK(found.bytes == 10 * i && found.origin == i);
  }
  void check_rest(std::uint64_t samples) {
    std::uint64_t count = 0, bytes = 0;
    table.for_each([&](const Sample& one, bool is_in_use, bool) {
      count += is_in_use ? 1 : 0;
      bytes += is_in_use ? one.estimated_bytes() : 0;
    });
    SIM_CHECK(count == samples && table.figures().live_bytes == bytes && table.figures().lost == 0);
  }

  Table::Place places[kCount]{};
  Sample log[kCount]{};
  Table table;
  SimAtomics::atomic<std::uintptr_t> given{0};
};

// One thread inserts and gives away, while another's blocks come before and go in the same places.
template <std::memory_order kHandOver = std::memory_order_release>
Result given_away(Options options) {
  return sim::explore(options, [](sim::Execution& run) {
    World<kHandOver> world;
    run.spawn([&] {
      (void)world.table.insert(sample(1));
      (void)world.table.insert(sample(2));
      world.give(2);
      world.remove(1);
    });
    run.spawn([&] {
      (void)world.table.insert(sample(3));
      if (const std::uintptr_t mine = world.taken(); mine != 0) {
        world.find(mine);
        world.remove(mine);
        world.give(0);
      }
      Sample found;
      SIM_CHECK(!world.table.find(block(4), found));
      world.find(3);
    });
    run.check([&] { world.check_rest(world.taken() != 0 ? 2 : 1); });
  });
}

// Two threads free the same block: one of them is told so.
Result freed_twice(Options options) {
  return sim::explore(options, [](sim::Execution& run) {
    World<std::memory_order_release> world;
    (void)world.table.insert(sample(1));
    (void)world.table.insert(sample(2));
    unsigned removed = 0;
    for (int t = 0; t < 2; ++t)
      run.spawn([&] {
        Sample found;
        if (world.table.remove(block(1), found)) ++removed;
        world.find(2);
      });
    run.check([&] {
      SIM_CHECK(removed == 1);
      world.check_rest(1);
    });
  });
}

// A reader outside the process, as live_profile.hpp describes it.
Result copied_meanwhile(Options options) {
  return sim::explore(options, [](sim::Execution& run) {
    World<std::memory_order_release> world;
    (void)world.table.insert(sample(1));
    run.spawn([&] {
      world.remove(1);
      (void)world.table.insert(sample(2));  // in its place
    });
    run.spawn([&] {
      const auto& changes = world.table.changes();
      const std::uint64_t seen = changes.look();
      const Table::Place& place = world.places[3];
      const auto get = [](const auto& word) { return word.load(std::memory_order_relaxed); };
      const std::uintptr_t there = get(place.block);
      const std::uint64_t bytes = get(place.bytes), birth = get(place.birth);
      const std::uint32_t stack = get(place.origin);
      if (!changes.is_still(seen) || there <= 1) return;
      SIM_CHECK(there == block(stack) && bytes == 10 * stack && birth == stack);
    });
    run.check([&] { world.check_rest(1); });
  });
}

TEST(SampleTable_Model, CopiedMeanwhile_WholeSamples) {
  sim::expect_ok(copied_meanwhile({.name = "samples/copied", .preemptions = 3, .stale = 2}));
}
TEST(SampleTable_Model, BlocksGivenAway_FoundAndRemovedOnce) {
  sim::expect_ok(given_away({.name = "samples/given", .preemptions = 3, .stale = 2}));
}
TEST(SampleTable_Model, FreedTwice_RemovedOnce) {
  sim::expect_ok(freed_twice({.name = "samples/twice", .preemptions = 3, .stale = 2}));
}

// The relaxed loads of find() stand on the order by which the program hands a block over.
TEST(SampleTable_Mutants, HandedOverWithoutOrder_NotFound) {
  const Options options{.name = "samples/unordered", .preemptions = 3, .stale = 3, .print = false};
  EXPECT_EQ(given_away<std::memory_order_relaxed>(options).failure, Failure::kCheck);
}

}  // namespace
}  // namespace freehold::profile
