// SPDX-License-Identifier: MIT
// The statistics of locks and of contention: what two threads count at the same time is counted twice.
#include <gtest/gtest.h>

#include "freehold/sync/atomics.hpp"
#include "freehold/sync/change_count.hpp"
#include "freehold/sync/contention.hpp"
#include "freehold/sync/lock.hpp"
#include "tests/unit/hooked_atomics.hpp"

namespace freehold::sync {
namespace {

using test::HookedAtomics;

// Lets another thread count amid the count of the first, whichever atomic that changes.
template <class F>
void count_while_counting(const F& count) {
  HookedAtomics::hook = [&](const void*) {
    HookedAtomics::hook = nullptr;
    count();
  };
  count();
  ASSERT_FALSE(HookedAtomics::hook) << "nothing was counted";
}

TEST(CountWaits, TwoThreadsAtOnce_BothCount) {
  CountWaits<HookedAtomics> waits;
  count_while_counting([&] { waits.waited(); });
  EXPECT_EQ(waits.count(), 2U);
}

TEST(CountContention, TwoThreadsOfOneCellAtOnce_BothCount) {
  CountContention<HookedAtomics> contention;
  count_while_counting([&] { contention.operated(); });
  count_while_counting([&] { contention.retried(); });
  count_while_counting([&] { contention.waited(); });
  const Contention all = contention.total();
  EXPECT_EQ(all.operations, 2U);
  EXPECT_EQ(all.retries, 2U);
  EXPECT_EQ(all.waits, 2U);
}

TEST(IgnoreContention, WhateverHappens_NothingIsCounted) {
  constexpr IgnoreContention contention;
  contention.operated();
  contention.retried();
  contention.waited();
  const Contention all = contention.total();
  EXPECT_EQ(all.operations + all.retries + all.waits, 0U);
  EXPECT_EQ(all.share(), 0.0);
}

TEST(Contention, NoOperations_NoShare) {
  Contention none;
  EXPECT_EQ(none.share(), 0.0);
  none.operations = 4;
  none.retries = 1;
  EXPECT_EQ(none.share(), 0.25);
}

// As in a child of fork: the thread that was amid a change is not there.
TEST(ChangeCount, ResetAmidAChange_ItIsOver_AndOtherwiseNothingChanges) {
  ChangeCount<NativeAtomics> changes;
  changes.begin();
  const std::uint64_t amid = changes.look();
  EXPECT_FALSE(changes.is_still(amid));
  changes.reset();
  const std::uint64_t after = changes.look();
  EXPECT_NE(after, amid);
  EXPECT_TRUE(changes.is_still(after));
  changes.reset();
  EXPECT_TRUE(changes.is_still(after));
}

TEST(UnsharedAtomics, CompareExchangeOfAnotherValue_TellsWhatIsThere) {
  UnsharedAtomics::atomic<unsigned> value(7);
  unsigned expected = 5;
  EXPECT_FALSE(value.compare_exchange_weak(expected, 9));
  EXPECT_EQ(expected, 7U);
  EXPECT_TRUE(value.compare_exchange_strong(expected, 9));
  EXPECT_EQ(value.load(), 9U);
}

}  // namespace
}  // namespace freehold::sync
