// SPDX-License-Identifier: MIT
// Every pool of the registry on the simulated machine: all interleavings of two and three threads within bounds, random ones
// of more, and each of its memory orders weakened in turn. A new strategy is explored because it is registered.
#include <gtest/gtest.h>

#include "tests/model/pool_scenarios.hpp"
#include "tests/support/strategies.hpp"

namespace freehold::model {
namespace {

template <class S>
class Pools_Model : public testing::Test {
 protected:
  void SetUp() override {
    if (!kIsModelled<S>)
      GTEST_SKIP() << "nothing of it goes through the simulated machine, or its lock spins: pool_lock_model.cpp";
  }
};
TYPED_TEST_SUITE(Pools_Model, test::StrategyTypes, test::StrategyName);

TYPED_TEST(Pools_Model, TwoAndThreeThreads_NoSlotTwiceNoneLost) {
  if constexpr (kIsModelled<TypeParam>) {
    const Effort effort;
    std::uint64_t executions = 0;
    for (const Scenario& scenario : small_scenarios()) {
      const sim::Result result = explore(scenario, subject<TypeParam>(), effort);
      executions += result.executions;
      EXPECT_TRUE(result.ok()) << scenario.name << ": " << result;
    }
    this->RecordProperty("executions", std::to_string(executions));
  }
}

TYPED_TEST(Pools_Model, ManyThreads_Pct_NoSlotTwiceNoneLost) {
  if constexpr (kIsModelled<TypeParam>) {
    const Effort effort;
    for (const Scenario& scenario : large_scenarios()) {
      const sim::Result result = explore_randomly(scenario, subject<TypeParam>(), effort);
      EXPECT_TRUE(result.ok()) << scenario.name << ": " << result;
    }
  }
}

TYPED_TEST(Pools_Model, EachOrderWeakened_SeenOrExplained) {
  if constexpr (kIsModelled<TypeParam>) {
    Effort effort;
    effort.print = false;
    unsigned killed = 0, explained = 0;
    for (const OrderMutant& mutant : order_mutants<TypeParam>()) {
      const bool may_survive = !mutant.unobservable.empty();
      const sim::Result result = hunt(mutant.subject, effort, may_survive);
      EXPECT_NE(result.failure, sim::Failure::kScenario) << mutant.subject.name << ": " << result;
      if (result.failure != sim::Failure::kNone) {
        ++killed;
      } else if (may_survive) {
        ++explained;
        std::printf("[ survives ] %s: %s\n", mutant.subject.name.c_str(), std::string(mutant.unobservable).c_str());
      } else {
        ADD_FAILURE() << mutant.subject.name << " survives: relax the order or say why it stays";
      }
    }
    std::printf("[ mutants  ] %s: %u orders weakened and seen, %u explained\n", std::string(TypeParam::kName).c_str(),
                killed, explained);
  }
}

// ---- pools that no strategy of the registry is

void explore_other(const Subject& subject) {
  const Effort effort{.preemptions_of_two = 3};
  for (const Scenario& scenario : small_scenarios()) {
    const sim::Result result = explore(scenario, subject, effort);
    EXPECT_TRUE(result.ok()) << scenario.name << ": " << result;
  }
}

// An empty shard does not ask the others.
TEST(Pools_Others, DistributedBits_EmptyShardFails_NoSlotTwiceNoneLost) {
  explore_other(
      subject_of<pool::Distributed<pool::LockFreeBits::Pool<sim::SimAtomics>, pool::ByCpu<sim::SimAtomics>, pool::Fail>>(
          "distributed-bits, fail", false));
}
// The article's array of pools: nothing is found but in the thread's own stack, here the CPU's. The layouts differ in
// nothing else.
TEST(Pools_Others, OwnStacks_EmptyStackFails_NoSlotTwiceNoneLost) {
  explore_other(subject_of<pool::RoamingStacksPool<pool::ByCpu<sim::SimAtomics>, sync::IgnoreContention,
                                                   pool::DistributedStackOrders{pool::TaggedStackOrders{}, {}}, pool::Fail,
                                                   pool::Padded>>("own-stacks", false));
}
// Shards with a lock; and what is not found at home is found elsewhere.
TEST(Pools_Others, DistributedLockedBits_NoSlotTwiceNoneLost) {
  explore_other(subject_of<pool::Distributed<pool::LockedBits::Pool<sim::SimAtomics>, pool::ByThread<sim::SimAtomics>>>(
      "distributed-locked-bits", false));
}

class GrowingBest : public pool::Best::Pool<sim::SimAtomics> {
 public:
  explicit GrowingBest(const pool::PoolShape& shape) : pool::Best::Pool<sim::SimAtomics>(shape, pool::Growth::kGrowing) {}
};
TEST(Pools_Others, GrowingBest_NoSlotTwiceNoneLost) {
  const Subject subject = subject_of<GrowingBest>("best, growing", true, true);
  for (const Scenario& scenario : small_scenarios()) {
    const sim::Result result = explore(scenario, subject, {.preemptions_of_two = 2, .preemptions_of_three = 1});
    EXPECT_TRUE(result.ok()) << scenario.name << ": " << result;
  }
}

}  // namespace
}  // namespace freehold::model
