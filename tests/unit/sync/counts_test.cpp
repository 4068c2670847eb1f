// SPDX-License-Identifier: MIT
// The statistics of locks and of contention: what two threads count at the same time is counted twice.
#include "freehold/sync/atomics.hpp"
#include "freehold/sync/change_count.hpp"
#include "freehold/sync/lock.hpp"
#include "freehold/sync/policies.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/hooked_atomics.hpp"

namespace freehold::sync {
namespace {

using test::HookedAtomics;

// Lets another thread count during the count of the first, whichever atomic that changes.
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

}  // namespace
}  // namespace freehold::sync
