// SPDX-License-Identifier: MIT
// The pools' spin lock and ticket lock: data that they protect is free of races, no increment is lost, a thread that waits
// is told apart from one that does not, and each order weakened is noticed. (The pools behind them are those of the mutex:
// three threads that spin have too many schedules for the scenarios of all pools.)
#include <gtest/gtest.h>

#include "freehold/strategies/pool_lock.hpp"
#include "freehold/sync/policies.hpp"
#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/expect_ok.hpp"

namespace freehold {
namespace {

using sim::SimAtomics;

template <class Lock>
sim::Result count_under(sim::Options options, unsigned threads) {
  return sim::explore(options, [threads](sim::Execution& run) {
    Lock lock;
    sync::CountContention<SimAtomics> contention;
    SimAtomics::var<unsigned> count{0};
    for (unsigned i = 0; i < threads; ++i) {
      run.spawn([&] {
        for (int round = 0; round < 2; ++round) {
          const pool::PoolGuard guard(lock, contention);
          count.store(count.load() + 1);
        }
      });
    }
    run.check([&] {
      SIM_CHECK(count.load() == 2 * threads);
      SIM_CHECK(contention.total().waits <= 2 * threads);
    });
  });
}
template <class Lock>
sim::Failure failure_of_two(const char* name) {
  return count_under<Lock>({.name = name, .preemptions = 3, .stale = 1, .print = false}, 2).failure;
}

template <template <sync::Atomics A, pool::SpinLockOrders O> class Lock>
void expect_sound(const char* name) {
  constexpr pool::SpinLockOrders kOrders{};
  expect_ok(count_under<Lock<SimAtomics, kOrders>>({.name = name, .preemptions = 3, .stale = 1}, 2));
  expect_ok(count_under<Lock<SimAtomics, kOrders>>(
      {.name = name, .strategy = sim::Strategy::kPct, .stale = 2, .depth = 4, .executions = 10'000}, 4));
  constexpr pool::SpinLockOrders kTake{.take = std::memory_order_relaxed}, kGive{.give = std::memory_order_relaxed};
  EXPECT_EQ((failure_of_two<Lock<SimAtomics, kTake>>(name)), sim::Failure::kRace);
  EXPECT_EQ((failure_of_two<Lock<SimAtomics, kGive>>(name)), sim::Failure::kRace);
}
TEST(PoolLock_Model, SpinLock_NoRaceAndEachOrderCounts) { expect_sound<pool::SpinLock>("spin lock"); }
TEST(PoolLock_Model, TicketLock_NoRaceAndEachOrderCounts) { expect_sound<pool::TicketLock>("ticket lock"); }

}  // namespace
}  // namespace freehold
