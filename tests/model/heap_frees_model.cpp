// SPDX-License-Identifier: MIT
// HeapFrees on the simulated machine: a thread makes an array known and frees blocks into it while another one takes them
// out, twice, and out of an array where a block lies already. The oracle: each block comes back once; whoever gets it writes
// to it, so that one which two have, or whose former use is not visible, is a data race. The fast path stores without an
// order; that the other thread's second fence makes a release of each such store, as membarrier does, is taken for granted
// here, and that there is one is not.
#include <gtest/gtest.h>

#include <iterator>

#include "freehold/alloc/scope/heap_frees.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/mutants.hpp"
#include "tests/model/scenarios.hpp"

namespace freehold {
namespace {

using alloc::HeapFreesOrders;
using sim::Execution;
using sim::Failure;
using sim::SimAtomics;
using sim::within;

enum Mutants : unsigned { kNoFirstFence = 1, kNoSecondFence = 2, kLooksAgainForArrays = 4 };

template <class Orders, unsigned kMutants>
void others_take(Execution& run) {
  constexpr unsigned kBlocks = 4;
  using Frees = alloc::HeapFrees<SimAtomics, Orders, 2>;
  struct Block {
    SimAtomics::var<unsigned> uses{0};
  };
  Frees frees, idle;
  SimAtomics::atomic<Frees*> known{nullptr};
  Block blocks[kBlocks], lies_there;
  idle.entries[0].store(&lies_there, std::memory_order_relaxed);
  unsigned top = 0;
  const auto use = [](void* block) {
    auto& uses = static_cast<Block*>(block)->uses;
    uses.store(uses.load() + 1);
  };
  const auto give = [use](void** given, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) use(given[i]);
  };
  const auto take_own = [&] {
    void* taken[Frees::kEntries];
    give(taken, frees.take_all(top, taken, [] { SimAtomics::light_fence(); }));
    top = 0;
  };
  run.spawn([&] {
    known.store(&frees, std::memory_order_release);
    for (Block& block : blocks) {
      use(&block);
      if (top == Frees::kEntries) take_own();
      frees.entries[top++].store(&block, std::memory_order_release);
    }
  });
  run.spawn([&] {
    for (int i = 0; i < 2; ++i) {
      void* taken[2 * Frees::kEntries];
      Frees* const first = known.load(std::memory_order_acquire);
      const auto arrays = [&](const auto& f) {
        Frees* const array = (kMutants & kLooksAgainForArrays) != 0 ? known.load(std::memory_order_acquire) : first;
        f(idle);
        if (array != nullptr) f(*array);
      };
      unsigned fences = kMutants;
      const auto fence = [&fences] {
        if ((fences & 1) == 0) SimAtomics::heavy_fence();
        fences >>= 1;
        return true;
      };
      give(taken, alloc::take_from_all(arrays, fence, [](const void*) { return true; }, taken, std::size(taken)));
    }
  });
  run.check([&] {
    take_own();
    for (Block& block : blocks) SIM_CHECK(block.uses.load() == 2);
  });
}
template <class Orders = HeapFreesOrders, unsigned kMutants = 0>
const sim::Scenarios kTakes{{within("others take", 3, 2), others_take<Orders, kMutants>}};

TEST(HeapFrees_Model, AnotherThreadTakesBlocksOut_EachComesBackOnce) { sim::expect_all_ok("heap frees", kTakes<>); }

FREEHOLD_WEAKER(LeavesRelaxed, HeapFreesOrders, kLeave, relaxed);
FREEHOLD_WEAKER(LooksRelaxed, HeapFreesOrders, kLook, relaxed);
TEST(HeapFrees_Model, Mutants_AreKilled) {
  const auto killed = [](const sim::Scenarios& scenarios) {
    return sim::first_failure("heap frees", scenarios, 3, 2) != Failure::kNone;
  };
  EXPECT_TRUE(killed(kTakes<LeavesRelaxed>)) << "the array is left without a release";
  EXPECT_TRUE(killed(kTakes<LooksRelaxed>)) << "it is looked at without an acquire";
  EXPECT_TRUE(killed(kTakes<HeapFreesOrders, kNoFirstFence>)) << "no fence after close()";
  EXPECT_TRUE(killed(kTakes<HeapFreesOrders, kNoSecondFence>)) << "no fence before open()";
  EXPECT_TRUE(killed(kTakes<HeapFreesOrders, kLooksAgainForArrays>)) << "an array is looked into that was not closed";
}

}  // namespace
}  // namespace freehold
