// SPDX-License-Identifier: MIT
// Conflicts are counted where they occur: two simulated threads in one shard, in all interleavings with two preemptions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "freehold/sync/policies.hpp"
#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/support/strategies.hpp"

namespace freehold {
namespace {

using sim::SimAtomics;

// The strategies in which threads can meet.
using Contended = testing::Types<pool::LockFreeFlags, pool::LockedFlags, pool::SpinLockedFlags, pool::TicketLockedFlags,
                                 pool::LockedBits32, pool::LockedBits, pool::LockedBitmapTree32, pool::LockedBitmapTree,
                                 pool::LockFreeBits, pool::LockFreeBitmapTree, pool::TaggedStack, pool::StacksByThread,
                                 pool::StacksByHash, pool::StacksByCpu, pool::RoamingStacksByThread,
                                 pool::RoamingStacksByCpu, pool::HazardStack, pool::Magazines>;

template <class S>
class Contention_Model : public testing::Test {};
TYPED_TEST_SUITE(Contention_Model, Contended, test::StrategyName);

TYPED_TEST(Contention_Model, TwoThreads_ConflictsAreCountedAndOperationsExact) {
  using Pool = typename TypeParam::template Pool<SimAtomics, sync::CountContention<SimAtomics>>;
  double least = 1, most = 0;
  const sim::Result result = sim::explore(
      {.name = "contention", .preemptions = 2, .stale = 0, .decide = sim::Decide::kAlternative}, [&](sim::Execution& run) {
        Pool pool({.slots = 4, .slot_bytes = 16, .shards = 1});
        for (int i = 0; i < 2; ++i) {
          run.spawn([&] {
            void* slots[2];
            for (void*& slot : slots) slot = pool.acquire();
            for (void* slot : slots)
              if (slot != nullptr) pool.release(slot);
          });
        }
        run.check([&] {
          const sync::Contention counted = pool.contention();
          if (TypeParam::kFindsLast) SIM_CHECK(counted.operations == 8);
          SIM_CHECK(counted.operations >= 4 && counted.operations <= 8);
          least = std::min(least, counted.share());
          most = std::max(most, counted.share());
        });
      });
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ(least, 0.0);
  EXPECT_GT(most, 0.0);
}

}  // namespace
}  // namespace freehold
