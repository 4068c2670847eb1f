// SPDX-License-Identifier: MIT
// check::StackDepot on the simulated machine. Threads store the same stack, and different ones that want the same place; one
// reads a stack whose number it was told without any order. Oracle: equal stacks get one number, different ones different
// numbers, and a number always leads to its whole stack.
#include "freehold/check/stack_depot.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/expect_ok.hpp"
#include "tests/model/mutants.hpp"

namespace freehold::check {
namespace {

using sim::Failure;
using sim::Options;
using sim::Result;
using sim::SimAtomics;

void* address(std::uintptr_t value) { return reinterpret_cast<void*>(value); }

// Four places: different stacks may meet in one of them, and there is always a free one for a second copy.
template <class Orders>
struct World {
  using Depot = StackDepot<SimAtomics, Orders>;

  World() { depot.init(table, 4, words, 16); }

  std::uint32_t insert(std::uintptr_t value) {
    void* const stack[] = {address(value), address(value + 100)};
    return depot.insert(stack, 2);
  }
  void check(std::uint32_t id, std::uintptr_t value) {
    void* stack[3] = {};
    SIM_CHECK(depot.read(id, stack, 3) == 2);
    SIM_CHECK(stack[0] == address(value) && stack[1] == address(value + 100));
  }

  typename Depot::Place table[4]{};
  typename Depot::Word words[16]{};
  Depot depot;
  SimAtomics::atomic<std::uint32_t> told{0};
};

template <class Orders = StackDepotOrders>
void same_and_others(sim::Execution& run) {
  World<Orders> world;
  std::uint32_t ids[2][2] = {};
  for (unsigned t = 0; t < 2; ++t)
    run.spawn([&, t] {
      ids[t][t] = world.insert(t + 1);
      ids[t][1 - t] = world.insert(2 - t);
      world.check(ids[t][1 - t], 2 - t);
    });
  run.check([&] {
    for (unsigned value = 0; value < 2; ++value) {
      SIM_CHECK(ids[0][value] == ids[1][value]);
      world.check(ids[0][value], value + 1);
    }
    SIM_CHECK(ids[0][0] != ids[0][1]);
  });
}

template <class Orders = StackDepotOrders>
void told_without_order(sim::Execution& run) {
  World<Orders> world;
  run.spawn([&] { world.told.store(world.insert(1), std::memory_order_relaxed); });
  run.spawn([&] {
    if (const std::uint32_t id = world.told.load(std::memory_order_relaxed); id != 0) {
      void* stack[2] = {};
      const unsigned depth = world.depot.read(id, stack, 2);
      SIM_CHECK(depth == 0 || (depth == 2 && stack[0] == address(1) && stack[1] == address(101)));
    }
  });
  run.check([&] { world.check(world.told.load(std::memory_order_relaxed), 1); });
}

// Two threads, and room for one stack.
Result one_fits(Options options) {
  return sim::explore(options, [](sim::Execution& run) {
    World<StackDepotOrders> world;
    world.depot.init(world.table, 4, world.words, 4);
    std::uint32_t ids[2] = {};
    for (unsigned t = 0; t < 2; ++t) run.spawn([&, t] { ids[t] = world.insert(t + 1); });
    run.check([&] {
      SIM_CHECK((ids[0] == 0) != (ids[1] == 0));
      const unsigned there = ids[0] != 0 ? 0 : 1;
      world.check(ids[there], there + 1);
      SIM_CHECK(world.insert(there + 1) == ids[there]);
    });
  });
}

TEST(StackDepot_Model, TwoThreadsStoreTheSameStacks_EachOnce) {
  sim::expect_ok(sim::explore({.name = "depot/same", .preemptions = 3, .stale = 2}, same_and_others<>));
}
TEST(StackDepot_Model, NumberToldWithoutOrder_NothingOrTheWholeStack) {
  sim::expect_ok(sim::explore({.name = "depot/told", .preemptions = 3, .stale = 3}, told_without_order<>));
}
TEST(StackDepot_Model, RoomForOne_OneFits) {
  sim::expect_ok(one_fits({.name = "depot/full", .preemptions = 3, .stale = 2}));
}

// ---- mutants

FREEHOLD_WEAKER(PutsRelaxed, StackDepotOrders, kPut, relaxed);
FREEHOLD_WEAKER(LooksRelaxed, StackDepotOrders, kLook, relaxed);
FREEHOLD_WEAKER(WritesRelaxed, StackDepotOrders, kWrite, relaxed);
FREEHOLD_WEAKER(ReadsRelaxed, StackDepotOrders, kRead, relaxed);
Options mutant(const char* name) { return {.name = name, .preemptions = 3, .stale = 3, .print = false}; }

TEST(StackDepot_Mutants, EachAlone_IsNoticed) {
  EXPECT_EQ(sim::explore(mutant("depot/put"), same_and_others<PutsRelaxed>).failure, Failure::kCheck);
  EXPECT_EQ(sim::explore(mutant("depot/look"), same_and_others<LooksRelaxed>).failure, Failure::kCheck);
  EXPECT_EQ(sim::explore(mutant("depot/write"), told_without_order<WritesRelaxed>).failure, Failure::kCheck);
  EXPECT_EQ(sim::explore(mutant("depot/read"), told_without_order<ReadsRelaxed>).failure, Failure::kCheck);
}

}  // namespace
}  // namespace freehold::check
