// SPDX-License-Identifier: MIT
// doctor::probe::SampledBlocks on the simulated machine: blocks of one line come and go by several threads. Oracle: a block
// that was kept is found by the thread that frees it, once its bit is there; at rest the bit of a line is set if the line
// holds a block, and gone after its last blocks went at once.
#include "tools/doctor/probe/sampled_blocks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/expect_ok.hpp"

namespace freehold::doctor::probe {
namespace {

using sim::Options;
using sim::Result;
using sim::SimAtomics;
using Blocks = SampledBlocks<SimAtomics, 3, 2>;  // two lines of four places

// A block at each of the first three places, which are one line's, and a second one at the first place.
const void* block(std::size_t i) {
  static const std::vector<const void*> kFound = [] {
    std::vector<const void*> found;
    const auto find = [&](std::size_t place, std::uintptr_t after) {
      std::uintptr_t address = after + 16;
      while (Blocks::place_of(reinterpret_cast<const void*>(address)) != place) address += 16;
      found.push_back(reinterpret_cast<const void*>(address));
      return address;
    };
    const std::uintptr_t first = find(0, 0);
    find(1, 0);
    find(2, 0);
    find(0, first);
    return found;
  }();
  return kFound[i];
}

struct World {
  Blocks blocks{};
  SimAtomics::atomic<unsigned> given{0};

  void check_rest(std::vector<std::size_t> in) {
    for (std::size_t i = 0; i < 4; ++i) SIM_CHECK(blocks.has(block(i)) == (std::ranges::find(in, i) != in.end()));
    SIM_CHECK(blocks.may_have(block(0)) == !in.empty());
  }
};

// One block of the line goes while others come, and while one of those goes again.
Result come_and_go(Options options) {
  return sim::explore(options, [](sim::Execution& run) {
    World world;
    (void)world.blocks.insert(block(0));
    run.spawn([&] { world.blocks.remove(block(0)); });
    run.spawn([&] { SIM_CHECK(world.blocks.insert(block(1))); });
    run.spawn([&] {
      SIM_CHECK(world.blocks.insert(block(2)));
      world.blocks.remove(block(2));
    });
    run.check([&] { world.check_rest({1}); });
  });
}

// The last ones of a line go at once: the bit goes, too, and nothing is kept.
Result all_go(Options options) {
  return sim::explore(options, [](sim::Execution& run) {
    World world;
    (void)world.blocks.insert(block(0));
    (void)world.blocks.insert(block(1));
    run.spawn([&] { world.blocks.remove(block(0)); });
    run.spawn([&] { world.blocks.remove(block(1)); });
    run.check([&] { world.check_rest({}); });
  });
}

// A block is handed to another thread, which frees it, while a second one wants its place.
Result handed_over(Options options) {
  return sim::explore(options, [](sim::Execution& run) {
    World world;
    bool second = false, removed = false;
    run.spawn([&] {
      if (world.blocks.insert(block(0))) world.given.store(1, std::memory_order_release);
    });
    run.spawn([&] {
      if (world.given.load(std::memory_order_acquire) == 0) return;
      SIM_CHECK(world.blocks.may_have(block(0)) && world.blocks.has(block(0)));
      world.blocks.remove(block(0));
      removed = true;
    });
    run.spawn([&] { second = world.blocks.insert(block(3)); });
    run.check([&] {
      const bool first = world.given.load() != 0;
      SIM_CHECK(first || second);
      std::vector<std::size_t> in;
      if (first && !removed) in.push_back(0);
      if (second) in.push_back(3);
      world.check_rest(in);
    });
  });
}

TEST(SampledBlocks_Model, BlocksOfALineComeAndGo_BitStaysForThoseThatAreThere) {
  sim::expect_ok(come_and_go({.name = "sampled/come_and_go", .preemptions = 3, .stale = 2}));
}
TEST(SampledBlocks_Model, LastOnesGoAtOnce_NoBitIsLeft) {
  sim::expect_ok(all_go({.name = "sampled/all_go", .preemptions = 4, .stale = 2}));
}
TEST(SampledBlocks_Model, HandedOver_FoundByTheThreadThatFreesIt) {
  sim::expect_ok(handed_over({.name = "sampled/handed_over", .preemptions = 3, .stale = 2}));
}

}  // namespace
}  // namespace freehold::doctor::probe
