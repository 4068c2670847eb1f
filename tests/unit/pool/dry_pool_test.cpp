// SPDX-License-Identifier: MIT
// A full pool as back pressure: what a refused acquire costs, and that what comes back is found.
#include <barrier>
#include <functional>
#include <utility>

#include "freehold/pool/best_pool_core.hpp"
#include "lab/strategies/registry.hpp"
#include "tests/support/inside.hpp"
#include "tests/support/test.hpp"

namespace freehold::pool {
namespace {

// Counts the fences that stop other threads: a system call each.
struct CountedFences : sync::NativeAtomics {
  static void heavy_fence() noexcept {
    ++fences;
    if (const auto meanwhile = std::exchange(at_next_fence, nullptr)) meanwhile();
    sync::NativeAtomics::heavy_fence();
  }
  static inline std::atomic<unsigned> fences{0};
  static inline std::function<void()> at_next_fence;
};
using Pool = Best::Pool<CountedFences>;

bool can_steal() { return sync::NativeAtomics::may_fence_heavily(); }

// A thread of the pool that holds a slot until told to give it back.
class Holder {
 public:
  explicit Holder(Pool& pool)
      : thread_([this, &pool] {
          void* const slot = pool.acquire();
          step_ = slot != nullptr ? 1 : 9;
          while (step_ == 1) std::this_thread::yield();
          pool.release(slot);
          step_ = 3;
          while (step_ == 3) std::this_thread::yield();
        }) {
    while (step_ == 0) std::this_thread::yield();
  }
  ~Holder() {
    give_back();
    step_ = 4;
    thread_.join();
  }
  [[nodiscard]] bool holds() const { return step_ == 1; }
  void give_back() {
    if (step_ == 1) step_ = 2;
    while (step_ == 2) std::this_thread::yield();
  }

 private:
  std::atomic<int> step_{0};
  std::thread thread_;
};

TEST(DryPool, AcquireAgainAndAgain_NobodyIsStopped) {
  if (!can_steal()) GTEST_SKIP() << "the system has no membarrier";
  Pool pool({.slots = 100, .slot_bytes = 16});
  std::vector<void*> slots;
  Holder a(pool), b(pool);
  ASSERT_TRUE(a.holds() && b.holds());
  while (void* const slot = pool.acquire()) slots.push_back(slot);
  EXPECT_EQ(slots.size(), 98U);
  const unsigned before = CountedFences::fences;
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(pool.acquire(), nullptr);
  EXPECT_EQ(CountedFences::fences - before, 0U);

  // Another thread's slot comes back: found, and the pool is as dry as before.
  a.give_back();
  void* const found = pool.acquire();
  EXPECT_NE(found, nullptr);
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(pool.acquire(), nullptr);
  EXPECT_EQ(CountedFences::fences - before, 0U);
  pool.release(found);
  EXPECT_EQ(pool.acquire(), found);
  for (void* const slot : slots) pool.release(slot);
  pool.release(found);
  b.give_back();
  EXPECT_EQ(pool.free_slots(), 100U);
  EXPECT_TRUE(pool::Inside::check_invariants(pool));
}

// The other thread asks while the first one steals: it waits for the thief, and does not start the arrays again to look for
// itself.
TEST(DryPool, TwoThreadsAskAtOnce_StoppedOnce) {
  if (!can_steal()) GTEST_SKIP() << "the system has no membarrier";
  Pool pool({.slots = 8, .slot_bytes = 64});
  std::atomic<int> step{0};
  std::atomic<void*> others{&pool};
  std::thread other([&] {
    void* mine[4];
    for (void*& slot : mine) slot = pool.acquire();
    for (step = 1; step == 1;) std::this_thread::yield();
    others = pool.acquire();
    while (step == 2) std::this_thread::yield();
    for (void* const slot : mine) pool.release(slot);
  });
  while (step == 0) std::this_thread::yield();
  while (pool.free_slots() > 0) ASSERT_NE(pool.acquire(), nullptr);
  const unsigned before = CountedFences::fences;
  CountedFences::at_next_fence = [&] {
    step = 2;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the other one is in its slow path by then
  };
  EXPECT_EQ(pool.acquire(), nullptr);
  while (others == &pool) std::this_thread::yield();
  EXPECT_EQ(others.load(), nullptr);
  EXPECT_EQ(CountedFences::fences - before, 2U);
  step = 3;
  other.join();
}

// A thread that uses the pool again as usual is not held up for ever.
TEST(DryPool, NoLongerFull_FewFences) {
  if (!can_steal()) GTEST_SKIP() << "the system has no membarrier";
  Pool pool({.slots = 100, .slot_bytes = 16});
  Holder a(pool);
  std::vector<void*> slots;
  while (void* const slot = pool.acquire()) slots.push_back(slot);
  const unsigned before = CountedFences::fences;
  for (void* const slot : slots) pool.release(slot);
  for (int i = 0; i < 10'000; ++i) {
    void* const slot = pool.acquire();
    ASSERT_NE(slot, nullptr);
    pool.release(slot);
  }
  EXPECT_LE(CountedFences::fences - before, 4U);
}

// Two threads of a pool of eight slots, in lockstep: each asks for so many, one after the other, then both release theirs.
struct OfTwoThreads {
  unsigned fences = 0;   // heavy ones
  unsigned refused = 0;  // acquires
};
constexpr unsigned kRounds = 2'000;
OfTwoThreads two_threads_ask_for(unsigned wanted) {
  Pool pool({.slots = 8, .slot_bytes = 64});
  std::barrier together(2);
  std::atomic<unsigned> refused{0};
  const unsigned before = CountedFences::fences;
  const auto work = [&] {
    std::vector<void*> mine(wanted);
    for (unsigned round = 0; round < kRounds; ++round) {
      for (void*& slot : mine) {
        slot = pool.acquire();
        refused += slot == nullptr;
        together.arrive_and_wait();
      }
      for (void* slot : mine)
        if (slot != nullptr) pool.release(slot);
      together.arrive_and_wait();
    }
  };
  std::thread other(work);
  work();
  other.join();
  return {CountedFences::fences - before, refused};
}
// docs/pools.md says of a pool of some slots: fences come only with refusals.
TEST(SmallPool, TwoThreadsThatWantNoMoreThanThereIs_NoFence) {
  if (!can_steal()) GTEST_SKIP() << "the system has no membarrier";
  for (const unsigned wanted : {1U, 2U, 3U, 4U}) {
    const OfTwoThreads seen = two_threads_ask_for(wanted);
    EXPECT_EQ(seen.refused, 0U) << wanted;
    EXPECT_EQ(seen.fences, 0U) << wanted;
  }
}
TEST(SmallPool, TwoThreadsThatWantMoreThanThereIs_FencesAreBoundedByTheTimesItRunsOut) {
  if (!can_steal()) GTEST_SKIP() << "the system has no membarrier";
  for (const unsigned wanted : {5U, 6U, 8U}) {
    const OfTwoThreads seen = two_threads_ask_for(wanted);
    EXPECT_EQ(seen.refused, kRounds * (2 * wanted - 8)) << wanted;
    EXPECT_LE(seen.fences, 4 * kRounds) << wanted
                                        << ": three when the pool runs out and goes on, one where a steal finds something";
  }
}

}  // namespace
}  // namespace freehold::pool
