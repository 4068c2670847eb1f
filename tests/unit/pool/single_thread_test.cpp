// SPDX-License-Identifier: MIT
// The pool for one thread, and every strategy's form for one thread, against a set of what is in use.
#include "freehold/pool/single_thread.hpp"

#include <sys/resource.h>

#include "freehold/pool/object_pool.hpp"
#include "lab/strategies/registry.hpp"
#include "tests/support/test.hpp"

namespace freehold::pool {
namespace {

// Acquires and releases by chance; every slot carries its stamp, and no slot is there twice.
template <class P>
void expect_sound(P& pool, std::size_t slots, bool bounded, bool finds_last) {
  std::mt19937 random(7);
  std::vector<std::pair<void*, std::uint32_t>> held;
  std::set<void*> in_use;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    const bool fills = i / 1000 % 2 == 0;
    if (held.empty() || random() % 4 < (fills ? 3u : 1u)) {
      void* const slot = pool.acquire();
      if (slot == nullptr) {
        ASSERT_TRUE(!finds_last || held.size() == slots);
        continue;
      }
      ASSERT_TRUE(in_use.insert(slot).second) << "one slot twice";
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(slot) % 16, 0u);
      std::memcpy(slot, &i, sizeof i);
      held.emplace_back(slot, i);
      ASSERT_TRUE(!bounded || held.size() <= slots);
    } else {
      std::swap(held[random() % held.size()], held.back());
      const auto [slot, stamp] = held.back();
      held.pop_back();
      ASSERT_EQ(std::memcmp(slot, &stamp, sizeof stamp), 0);
      in_use.erase(slot);
      pool.release(slot);
    }
  }
  for (const auto& [slot, stamp] : held) pool.release(slot);
}

TEST(SingleThreadPool, RandomUse_EachSlotOnceAndAllAreFound) {
  for (const std::size_t slots : {1u, 2u, 63u, 64u, 65u, 1000u}) {
    SingleThreadPool pool({.slots = slots, .slot_bytes = 24});
    EXPECT_EQ(pool.capacity(), slots);
    expect_sound(pool, slots, true, true);
    EXPECT_EQ(pool.in_use(), 0u);
    EXPECT_LE(pool.peak_slots(), slots);
  }
}
TEST(SingleThreadPool, LittleUsed_OpensLittle) {
  SingleThreadPool pool({.slots = 100'000, .slot_bytes = 64});
  void* const slot = pool.acquire();
  EXPECT_LE(pool.peak_slots(), 64u);
  EXPECT_EQ(pool.in_use(), 1u);
  pool.release(slot);
}
// Rounds of all slots, which come back in their order, backwards, every third first, in pairs, and by chance: runs begin,
// end and lie on the stack. Every round finds every slot once.
TEST(SingleThreadPool, OrdersOfRelease_EachSlotOnce) {
  for (const std::size_t slots : {5u, 64u, 1000u}) {
    SingleThreadPool pool({.slots = slots, .slot_bytes = 24});
    std::vector<void*> all, held;
    while (void* const slot = pool.acquire()) all.push_back(slot);
    ASSERT_EQ(all.size(), slots);
    std::ranges::sort(all);
    held = all;
    std::mt19937 random(3);
    for (int round = 0; round < 40; ++round) {
      switch (round % 5) {
        case 0: break;
        case 1: std::ranges::reverse(held); break;
        case 2:
          std::ranges::partition(held, [&](void* slot) { return (std::ranges::find(all, slot) - all.begin()) % 3 == 0; });
          break;
        case 3:
          for (std::size_t i = 0; i + 1 < slots; i += 2) std::swap(held[i], held[i + 1]);
          break;
        default: std::ranges::shuffle(held, random);
      }
      const std::size_t kept = random() % slots;  // these stay in use
      for (std::size_t i = kept; i < slots; ++i) {
        pool.release(held[i]);
        ASSERT_EQ(pool.in_use(), slots - (i - kept + 1));
      }
      for (std::size_t i = kept; i < slots; ++i) {
        held[i] = pool.acquire();
        ASSERT_EQ(pool.in_use(), i + 1);
      }
      ASSERT_EQ(pool.acquire(), nullptr);
      std::vector<void*> found = held;
      std::ranges::sort(found);
      ASSERT_EQ(found, all);
    }
  }
}
TEST(SingleThreadPool, ReleasedInOrder_TakesNoMemoryOfTheStack) {
  if (kChecked) GTEST_SKIP() << "each slot is marked, and none is in a run";
  constexpr std::size_t kSlots = 100'000;
  SingleThreadPool pool({.slots = kSlots, .slot_bytes = 16});
  std::vector<void*> held(kSlots);
  const auto faults = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
  };
  for (void*& slot : held) slot = pool.acquire();
  const auto before = faults();
  for (void* const slot : held) pool.release(slot);
  EXPECT_LE(faults() - before, 8);  // 196 pages as addresses
}
TEST(SingleThreadPool, BelowObjectPool_Works) {
  ObjectPool<std::string, SingleThreadPool> pool(2);
  auto first = pool.make("a string that is too long to lie within itself");
  const auto second = pool.make("second");
  EXPECT_EQ(pool.make("third"), nullptr);
  first.reset();
  EXPECT_EQ(*pool.make("fourth"), "fourth");
}

TEST(UnlockedPools, EveryStrategyRandomUse_EachSlotOnce) {
  for_each_strategy([]<class S>() {
    SCOPED_TRACE(S::kName);
    static_assert(SlotPool<UnlockedPool<S>>);
    for (const std::size_t slots : {1u, 64u, 1000u}) {
      UnlockedPool<S> pool({.slots = slots, .slot_bytes = 24});
      expect_sound(pool, slots, is_bounded<S>(), S::kFindsLast && is_bounded<S>());
    }
  });
}

}  // namespace
}  // namespace freehold::pool
