// SPDX-License-Identifier: MIT
// sync::Mutex under every interleaving within the bounds. The oracle: plain data that the lock protects is free of races and
// no increment is lost; no thread sleeps for ever; a mutant of each order and of each step of the protocol is caught.
#include <gtest/gtest.h>

#include "freehold/sync/lock.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/expect_ok.hpp"
#include "tests/model/mutants.hpp"

namespace freehold {
namespace {

using sim::Failure;
using sim::Result;
using sim::SimAtomics;

template <class Mutex>
Result two_or_more(const sim::Options& options, unsigned threads, unsigned rounds) {
  return sim::explore(options, [=](sim::Execution& run) {
    Mutex mutex;
    SimAtomics::var<unsigned> count{0};
    for (unsigned i = 0; i < threads; ++i) {
      run.spawn([&] {
        for (unsigned round = 0; round < rounds; ++round) {
          sync::Guard guard(mutex);
          count.store(count.load() + 1);
        }
      });
    }
    run.check([&] { SIM_CHECK(count.load() == threads * rounds); });
  });
}

using Shipped = sync::Mutex<SimAtomics>;

TEST(Mutex_Model, TwoThreadsTwoRounds_NoRaceNoSleeperLeft) {
  expect_ok(two_or_more<Shipped>({.name = "mutex/2x2", .preemptions = 4, .stale = 2}, 2, 2));
}
TEST(Mutex_Model, ThreeThreads_NoRaceNoSleeperLeft) {
  expect_ok(two_or_more<Shipped>({.name = "mutex/3x1", .preemptions = 3, .stale = 1}, 3, 1));
}
TEST(Mutex_Model, FourThreadsThreeRounds_Pct_NoRaceNoSleeperLeft) {
  expect_ok(two_or_more<Shipped>(
      {.name = "mutex/4x3", .strategy = sim::Strategy::kPct, .stale = 3, .depth = 4, .executions = 100'000}, 4, 3));
}
TEST(Mutex_Model, TryLock_FailsOrHoldsAlone) {
  const Result result = sim::explore({.name = "mutex/try", .preemptions = 4, .stale = 2}, [](sim::Execution& run) {
    Shipped mutex;
    SimAtomics::var<unsigned> count{0};
    unsigned taken = 0;
    for (int i = 0; i < 2; ++i) {
      run.spawn([&] {
        for (int round = 0; round < 2; ++round) {
          if (!mutex.try_lock()) continue;
          count.store(count.load() + 1);
          ++taken;
          mutex.unlock();
        }
      });
    }
    run.check([&] {
      SIM_CHECK(count.load() == taken && taken >= 1);
      SIM_CHECK(mutex.try_lock());
    });
  });
  EXPECT_TRUE(result.ok()) << result;
}
TEST(Mutex_Model, CountWaits_CountsTheSleeps) {
  bool slept = false, never_slept = false;
  const Result result = sim::explore({.name = "mutex/count", .preemptions = 2}, [&](sim::Execution& run) {
    sync::Mutex<SimAtomics, sync::CountWaits<SimAtomics>> mutex;
    for (int i = 0; i < 2; ++i) run.spawn([&] { sync::Guard guard(mutex); });
    run.check([&] { (mutex.waits().count() > 0 ? slept : never_slept) = true; });
  });
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_TRUE(slept && never_slept);
}

// Mutants of the orders.
FREEHOLD_WEAKER(RelaxedTake, sync::MutexOrders, kTake, relaxed);
FREEHOLD_WEAKER(RelaxedTakeContended, sync::MutexOrders, kTakeContended, relaxed);
FREEHOLD_WEAKER(RelaxedGive, sync::MutexOrders, kGive, relaxed);
template <class Orders>
using WithOrders = sync::Mutex<SimAtomics, sync::IgnoreWaits, Orders>;

template <class Mutex>
Result mutant(const char* name) {
  return two_or_more<Mutex>({.name = name, .preemptions = 4, .stale = 2, .print = false}, 2, 2);
}

TEST(Mutex_Mutants, EachOrderAlone_IsNoticed) {
  EXPECT_EQ(mutant<WithOrders<RelaxedTake>>("mutex/relaxed take").failure, Failure::kRace);
  EXPECT_EQ(mutant<WithOrders<RelaxedTakeContended>>("mutex/relaxed contended take").failure, Failure::kRace);
  EXPECT_EQ(mutant<WithOrders<RelaxedGive>>("mutex/relaxed give").failure, Failure::kRace);
}

// Mutants of the protocol go through the machine underneath: the same mutex on atomics that misbehave.
struct NobodyIsWoken : SimAtomics {
  static void notify_one(atomic<std::uint32_t>&) noexcept {}
};
// A sleeper does not mark the lock, so the thread that unlocks it does not know of the sleeper.
template <class T>
class UnmarkedAtomic : public sim::atomic<T> {
 public:
  using sim::atomic<T>::atomic;
  T exchange(T value, std::memory_order order) noexcept {
    return sim::atomic<T>::exchange(value == 2 ? T{1} : value, order);
  }
};
struct SleepersUnmarked : SimAtomics {
  template <class T>
  using atomic = UnmarkedAtomic<T>;
  template <class T>
  static void wait(const UnmarkedAtomic<T>& a, T) noexcept {
    SimAtomics::wait(a, 1);
  }
};
// Takes the lock by a load and a store.
using TornTake = model::Tearing<model::kCompareExchange>;

TEST(Mutex_Mutants, EachAlone_IsNoticed) {
  EXPECT_EQ(mutant<sync::Mutex<NobodyIsWoken>>("mutex/no wake").failure, Failure::kDeadlock);
  EXPECT_EQ(mutant<sync::Mutex<SleepersUnmarked>>("mutex/sleepers unmarked").failure, Failure::kDeadlock);
  EXPECT_EQ(mutant<sync::Mutex<TornTake>>("mutex/torn take").failure, Failure::kRace);
}

}  // namespace
}  // namespace freehold
