// SPDX-License-Identifier: MIT
// check::CheckedBlocks on the simulated machine. Oracle: of two threads that free one block, exactly one is told; a block
// has one user at a time; a look at all blocks during allocations and frees finds nothing where nothing is wrong.
#include "freehold/check/checked_blocks.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "sim/sim_atomics.hpp"
#include "tests/model/expect_ok.hpp"
#include "tests/unit/check/tiny_source.hpp"

namespace freehold::check {
namespace {

using sim::Options;
using sim::Result;
using sim::SimAtomics;

// The source's data is ordered by its lock, as the engine's is by its atomics.
struct LockedSource : TinySource<4, 1024> {
  using Tiny = TinySource<4, 1024>;
  LockedSource() {
    for (auto& slot : slots) new (slot) Header<SimAtomics>;
  }
  std::size_t take(unsigned c, void** out, std::size_t n) {
    const sync::Guard guard(lock);
    return Tiny::take(c, out, n < 2 ? n : 2);
  }
  void give(unsigned c, void* const* in, std::size_t n) {
    const sync::Guard guard(lock);
    Tiny::give(c, in, n);
  }
  Raw find(const void* address) {
    const sync::Guard guard(lock);
    return Tiny::find(address);
  }
  sync::Mutex<SimAtomics> lock;
};

unsigned g_reports = 0;

struct World {
  using Blocks = CheckedBlocks<SimAtomics, LockedSource>;
  World() : memory(Blocks::memory_bytes(settings())) {
    g_reports = 0;
    base::set_fatal_handler([](base::HeapError, const void*) { ++g_reports; });
    blocks.init(source, settings(), memory.data(), 1);
  }
  ~World() { base::set_fatal_handler(nullptr); }
  static Settings settings() {
    Settings s;
    s.quarantine = 1024;
    return s;
  }
  void* allocate() { return blocks.allocate({100, 0, Family::kMalloc}, false, 0); }
  void release(void* p) { blocks.deallocate(p, Claim{}, 0); }

  LockedSource source;
  std::vector<std::max_align_t> memory;
  Blocks blocks;
};

Result free_twice(Options options) {
  return sim::explore(options, [](sim::Execution& run) {
    World world;
    void* const block = world.allocate();
    for (unsigned t = 0; t < 2; ++t) run.spawn([&] { world.release(block); });
    run.check([&] { SIM_CHECK(g_reports == 1); });
  });
}

// Each thread frees what the other allocated, as far as it is told of it.
Result exchange_blocks(Options options, bool looks) {
  return sim::explore(options, [=](sim::Execution& run) {
    World world;
    SimAtomics::atomic<void*> given[2];
    for (auto& g : given) g.store(nullptr, std::memory_order_relaxed);
    for (unsigned t = 0; t < 2; ++t)
      run.spawn([&, t] {
        void* const mine = world.allocate();
        SIM_CHECK(mine != nullptr);
        given[t].store(mine, std::memory_order_release);
        if (looks && t == 0) SIM_CHECK(world.blocks.check_all() == 0);
        void* const theirs = given[1 - t].exchange(nullptr, std::memory_order_acquire);
        SIM_CHECK(theirs != mine);
        if (theirs != nullptr) world.release(theirs);
      });
    run.check([&] {
      SIM_CHECK(g_reports == 0);
      SIM_CHECK(world.blocks.check_all() == 0);
    });
  });
}

// The next allocation looks at the block that another thread is freeing; a third one may look at all.
Result look_while_freed(Options options, bool at_all) {
  return sim::explore(options, [=](sim::Execution& run) {
    World world;
    SimAtomics::atomic<void*> given{nullptr};
    run.spawn([&] {
      given.store(world.allocate(), std::memory_order_release);
      SIM_CHECK(world.allocate() != nullptr);
    });
    run.spawn([&] {
      if (void* const theirs = given.load(std::memory_order_acquire); theirs != nullptr) world.release(theirs);
    });
    if (at_all) run.spawn([&] { SIM_CHECK(world.blocks.check_all() == 0); });
    run.check([&] {
      SIM_CHECK(g_reports == 0);
      SIM_CHECK(world.blocks.check_all() == 0);
    });
  });
}

TEST(CheckedBlocks_Model, TwoThreadsFreeOneBlock_OneIsTold) {
  expect_ok(free_twice({.name = "checked/twice", .preemptions = 2, .stale = 2}));
}
TEST(CheckedBlocks_Model, ThreadsFreeEachOthersBlocks_NothingIsReported) {
  expect_ok(exchange_blocks({.name = "checked/exchange", .preemptions = 2, .stale = 1}, false));
}
TEST(CheckedBlocks_Model, LookAtTheLastBlockWhileItIsFreed_NothingIsReported) {
  expect_ok(look_while_freed({.name = "checked/last", .preemptions = 2, .stale = 1}, false));
}
TEST(CheckedBlocks_Model, LookAtTheLastBlockAmidALookAtAll_NoThreadWaitsForEver) {
  expect_ok(look_while_freed({.name = "checked/last_all", .preemptions = 1, .stale = 0}, true));
}
TEST(CheckedBlocks_Model, LookAtAllAmidChanges_NothingIsReported) {
  expect_ok(exchange_blocks({.name = "checked/look", .preemptions = 1, .stale = 1}, true));
}

}  // namespace
}  // namespace freehold::check
