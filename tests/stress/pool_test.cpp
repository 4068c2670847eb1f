// SPDX-License-Identifier: MIT
// Every pool of the registry under real threads: slots with an owner's stamp go from hand to hand; when all is done each is
// found again.
#include "tests/support/strategies.hpp"
#include "tests/support/test.hpp"

namespace freehold::test {
namespace {

using pool::NativePool;

constexpr unsigned kThreads = 4;

// A slot belongs to whoever's stamp it bears; a slot given to two has two who find the other's.
struct Stamped {
  std::uint64_t owner;
  std::uint64_t copies[3];

  void stamp(std::uint64_t who) noexcept {
    owner = who;
    for (std::uint64_t& copy : copies) copy = ~who;
  }
  [[nodiscard]] bool is_mine(std::uint64_t who) const noexcept {
    bool mine = owner == who;
    for (const std::uint64_t copy : copies) mine &= copy == ~who;
    return mine;
  }
};

template <class S>
class StressedPools : public testing::Test {
 protected:
  // Nothing was lost or doubled.
  static void expect_all(NativePool<S>& pool, std::size_t slots) {
    const std::vector<void*> all = acquire_all_everywhere(pool, slots + (pool::is_bounded<S>() ? 1 : 0));
    EXPECT_EQ(all.size(), slots);
    EXPECT_EQ(std::set<void*>(all.begin(), all.end()).size(), all.size());
    for (void* slot : all) pool.release(slot);
  }
};
TYPED_TEST_SUITE(StressedPools, StrategyTypes, StrategyName);

// Threads that hold some slots each, in bursts, release in random order, and hand some to their neighbour.
TYPED_TEST(StressedPools, HandedOnAndReleasedInAnyOrder_NoneTwiceNoneLost) {
  constexpr std::size_t kSlots = 300;
  constexpr int kSteps = 15'000;
  NativePool<TypeParam> pool({.slots = kSlots, .slot_bytes = sizeof(Stamped), .alignment = alignof(Stamped)});
  std::atomic<Stamped*> mailboxes[kThreads]{};
  std::atomic<int> wrong{0};

  const auto work = [&](unsigned me) {
    const std::uint64_t mine = me + 1;
    std::minstd_rand random(me);
    std::vector<Stamped*> held;
    const auto release = [&](Stamped* slot, std::uint64_t owner) {
      if (!slot->is_mine(owner)) ++wrong;
      slot->stamp(0);
      pool.release(slot);
    };
    for (int step = 0; step < kSteps; ++step) {
      const auto dice = random() % 16;
      if (dice < 8 && held.size() < kSlots / kThreads) {
        if (auto* const slot = static_cast<Stamped*>(pool.acquire()); slot != nullptr) {
          slot->stamp(mine);
          held.push_back(slot);
        }
      } else if (dice < 14 && !held.empty()) {
        std::swap(held[random() % held.size()], held.back());
        release(held.back(), mine);
        held.pop_back();
      } else if (dice == 14 && !held.empty()) {
        if (Stamped* const former = mailboxes[me].exchange(held.back()); former != nullptr) release(former, mine);
        held.pop_back();
      } else {
        const unsigned neighbour = (me + 1) % kThreads;
        if (Stamped* const slot = mailboxes[neighbour].exchange(nullptr); slot != nullptr) release(slot, neighbour + 1);
      }
    }
    for (Stamped* slot : held) release(slot, mine);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  for (auto& mailbox : mailboxes)
    if (mailbox != nullptr) pool.release(mailbox);
  this->expect_all(pool, kSlots);
}

// More wishes than slots: who finds none goes on; a pool that promises to find the last slot does when there must be one.
TYPED_TEST(StressedPools, FewSlots_NoneTwiceAndNoneMissed) {
  constexpr std::size_t kSlots = kThreads;
  constexpr int kSteps = 10'000;
  NativePool<TypeParam> pool({.slots = kSlots, .slot_bytes = sizeof(Stamped), .alignment = alignof(Stamped)});
  std::atomic<int> wrong{0}, missed{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, mine = std::uint64_t{i} + 1] {
      for (int step = 0; step < kSteps; ++step) {
        auto* const slot = static_cast<Stamped*>(pool.acquire());
        if (slot == nullptr) {
          ++missed;  // each thread holds one at most, so one is always free
          continue;
        }
        slot->stamp(mine);
        if (step % 64 == 0) std::this_thread::yield();
        if (!slot->is_mine(mine)) ++wrong;
        pool.release(slot);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  if (TypeParam::kFindsLast) {
    EXPECT_EQ(missed, 0);
  }
  this->expect_all(pool, kSlots);
}

}  // namespace
}  // namespace freehold::test
