// SPDX-License-Identifier: MIT
// sync::ChangeCount under every interleaving and stale read within the bounds. The oracle: two numbers that a writer keeps
// equal to how often it has changed them. A reader that may believe what it read has read both alike, and as old as it
// looked.
#include <gtest/gtest.h>

#include "freehold/sync/change_count.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/expect_ok.hpp"
#include "tests/model/mutants.hpp"

namespace freehold {
namespace {

using sim::Failure;
using sim::Result;
using sim::SimAtomics;

// A writer makes `changes` changes; readers look once each. `believed`: whether some look in some execution was.
template <class Orders>
Result changes_and_looks(const sim::Options& options, unsigned changes, unsigned readers, bool* believed = nullptr,
                         bool* refused = nullptr) {
  return sim::explore(options, [=](sim::Execution& run) {
    sync::ChangeCount<SimAtomics, Orders> count;
    SimAtomics::atomic<std::uint64_t> first{0}, second{0};
    run.spawn([&] {
      for (unsigned i = 1; i <= changes; ++i) {
        const sync::Change change(count);
        first.store(i, std::memory_order_relaxed);
        second.store(i, std::memory_order_relaxed);
      }
    });
    for (unsigned i = 0; i < readers; ++i) {
      run.spawn([&] {
        const std::uint64_t seen = count.look();
        const std::uint64_t a = first.load(std::memory_order_relaxed), b = second.load(std::memory_order_relaxed);
        const bool still = count.is_still(seen);
        if (still) SIM_CHECK(a == b && a == seen / 2);
        if (bool* const to = still ? believed : refused; to != nullptr) *to = true;
      });
    }
    run.check([&] {
      SIM_CHECK(count.look() == 2 * changes);
      SIM_CHECK(count.is_still(2 * changes));
    });
  });
}

using Shipped = sync::ChangeCountOrders;

TEST(ChangeCount_Model, OneReader_BelievesNoPartOfAChange) {
  bool believed = false, refused = false;
  expect_ok(
      changes_and_looks<Shipped>({.name = "change_count/1x2", .preemptions = 4, .stale = 3}, 2, 1, &believed, &refused));
  EXPECT_TRUE(believed && refused);
}
TEST(ChangeCount_Model, TwoReaders_BelieveNoPartOfAChange) {
  expect_ok(changes_and_looks<Shipped>({.name = "change_count/2x1", .preemptions = 3, .stale = 2}, 1, 2));
}

TEST(ChangeCount_Model, ForkAmidAChange_ResetEndsIt) {
  sync::ChangeCount<SimAtomics> count;
  count.begin();
  EXPECT_FALSE(count.is_still(count.look())) << "a change is under way";
  count.reset();
  EXPECT_TRUE(count.is_still(count.look()));
  const std::uint64_t at_rest = count.look();
  count.reset();
  EXPECT_EQ(count.look(), at_rest) << "nothing was to be ended";
}

FREEHOLD_WEAKER(RelaxedBegin, Shipped, kBegin, relaxed);
FREEHOLD_WEAKER(RelaxedEnd, Shipped, kEnd, relaxed);
FREEHOLD_WEAKER(RelaxedLook, Shipped, kLook, relaxed);
FREEHOLD_WEAKER(RelaxedLookAgain, Shipped, kLookAgain, relaxed);

template <class Orders>
Result mutant(const char* name) {
  return changes_and_looks<Orders>({.name = name, .preemptions = 4, .stale = 3, .print = false}, 2, 1);
}

TEST(ChangeCount_Mutants, EachAlone_IsNoticed) {
  EXPECT_EQ(mutant<RelaxedBegin>("change_count/relaxed begin").failure, Failure::kCheck);
  EXPECT_EQ(mutant<RelaxedEnd>("change_count/relaxed end").failure, Failure::kCheck);
  EXPECT_EQ(mutant<RelaxedLook>("change_count/relaxed look").failure, Failure::kCheck);
  EXPECT_EQ(mutant<RelaxedLookAgain>("change_count/relaxed look again").failure, Failure::kCheck);
}

}  // namespace
}  // namespace freehold
