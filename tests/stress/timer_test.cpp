// SPDX-License-Identifier: MIT
// Real threads on the structures that any thread may use: setters, cancellers and destroyers against an owner that advances.
// The ledger of each timer: every arming ended in a call, in a cancel, or with the timer. Every context goes back to the
// heap when its timer was destroyed and no callback of it can run, so that a late call is a use after free.
#include "freehold/timer/driver.hpp"
#include "freehold/timer/timer_queue.hpp"
#include "lab/timers/deque_timer_queue.hpp"
#include "tests/support/test.hpp"
#include "tests/support/trace.hpp"

namespace freehold::test {
namespace {

using timer::AnyThread;
using timer::SetResult;
using timer::TimerId;
using namespace std::chrono_literals;

template <class T>
class TimerThreads : public testing::Test {};
using SharedTypes = testing::Types<timer::TimerWheel<AnyThread, std::chrono::microseconds>, timer::TimerWheel<AnyThread>,
                                   timer::TimerQueue<AnyThread>, timer::DequeTimerQueue<std::allocator<char>, AnyThread>>;
TYPED_TEST_SUITE(TimerThreads, SharedTypes);

struct Account {
  // relaxed: a ledger, read when all is quiet.
  void operator()() noexcept { called.fetch_add(1, std::memory_order_relaxed); }
  std::atomic<std::uint64_t> armed{0}, called{0}, cancelled{0};
};

constexpr unsigned kThreads = 3;
std::uint64_t rounds() { return 30'000 * number_from_environment("FREEHOLD_TEST_SCALE", 1); }

// All threads on the same few timers.
TYPED_TEST(TimerThreads, SetAndCancelTheSameTimers_EveryArmingEndsOnce) {
  constexpr std::size_t kTimers = 16;
  timer::Driver<TypeParam> driver;
  std::vector<Account> accounts(kTimers);
  std::vector<TimerId> ids;
  for (Account& account : accounts) ids.push_back(driver.create(std::ref(account)));
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      for (std::uint64_t i = 0; i < rounds(); ++i) {
        const std::size_t k = random() % kTimers;
        if (random() % 3 == 0) {
          accounts[k].cancelled += driver.cancel(ids[k]);
        } else {
          const auto delay = std::chrono::microseconds(random() % (std::uint64_t{1} << random() % 20));
          accounts[k].armed += driver.set_after(ids[k], delay) == SetResult::kArmed;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t k = 0; k < kTimers; ++k) accounts[k].cancelled += driver.cancel(ids[k]);
  driver.quiesce();
  for (const Account& account : accounts) {
    EXPECT_EQ(account.armed, account.called + account.cancelled);
    EXPECT_GT(account.armed, 0u);
  }
}

// Each thread has its own timers, the hot case; some are left to fire, and contexts go as soon as they may.
TYPED_TEST(TimerThreads, CreateSetCancelDestroy_NoCallAfterTheEnd) {
  timer::Driver<TypeParam> driver;
  std::atomic<std::uint64_t> armed{0}, called{0}, cancelled{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      for (std::uint64_t i = 0; i < rounds() / 10; ++i) {
        auto account = std::make_unique<Account>();
        const TimerId id = driver.create(std::ref(*account));
        ASSERT_TRUE(id);
        for (int n = 0; n < 5; ++n) {
          account->armed += driver.set_after(id, std::chrono::microseconds(random() % 2000)) == SetResult::kArmed;
          if (n < 4) account->cancelled += driver.cancel(id);
        }
        if (random() % 8 == 0) std::this_thread::sleep_for(100us);
        account->cancelled += driver.cancel(id);
        ASSERT_TRUE(driver.destroy(id));
        ASSERT_FALSE(driver.cancel(id));
        driver.quiesce();
        ASSERT_EQ(account->armed, account->called + account->cancelled);
        armed += account->armed;
        called += account->called;
        cancelled += account->cancelled;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(armed, called + cancelled);
  EXPECT_GE(cancelled, armed / 2);
}

}  // namespace
}  // namespace freehold::test
