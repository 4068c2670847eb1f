// SPDX-License-Identifier: MIT
// The program that loads the plugins. It tests that a pool, heap or timer works whichever of the two makes, uses and ends
// it.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/plugin/heap_side.hpp"
#include "tests/plugin/pool_side.hpp"

namespace freehold::test {
namespace {

std::vector<std::string> g_plugins;

struct Known {
  std::string name;
  bool finds_last;
  bool bounded;
};
const std::vector<Known>& strategies() {
  static const std::vector<Known> all = [] {
    std::vector<Known> list;
    pool::for_each_strategy(
        [&]<class S>() { list.push_back({std::string(S::kName), S::kFindsLast, pool::is_bounded<S>()}); });
    return list;
  }();
  return all;
}

// Which plugin, how it is loaded, which side makes the object (false: the program), which strategy, heap or kind of timer.
using Case = std::tuple<std::size_t, int, bool, std::size_t>;

template <class Side>
class Plugin : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto [plugin, mode, plugin_makes, kind] = GetParam();
    void* const library = dlopen(file(plugin).c_str(), RTLD_NOW | mode);  // not closed: threads may have run its code
    ASSERT_NE(library, nullptr) << dlerror();
    const auto side = reinterpret_cast<void (*)(Side*)>(dlsym(library, "plugin_side"));
    ASSERT_NE(side, nullptr);
    side(&maker_);
    user_ = ours();
    if (!plugin_makes) std::swap(maker_, user_);
    kind_ = kind;
  }
  static Side ours() {
    if constexpr (std::is_same_v<Side, PoolSide>)
      return this_pool_side();
    else
      return this_heap_side();
  }
  static std::string file(std::size_t plugin) { return g_plugins.at(plugin + (std::is_same_v<Side, PoolSide> ? 0 : 2)); }
  Side maker_{}, user_{};
  std::size_t kind_ = 0;
};

class PluginPools : public Plugin<PoolSide> {
 protected:
  static constexpr std::size_t kSlots = 200;
  // All that there is, by turns through either side's code.
  std::vector<void*> acquire_all(void* pool) {
    std::vector<void*> slots;
    for (std::size_t i = 0; i < kSlots; ++i) {
      void* const slot = (i / 3 % 2 == 0 ? maker() : user()).acquire(pool);
      if (slot == nullptr) break;
      std::memset(slot, static_cast<int>(i), kSlotBytes);
      slots.push_back(slot);
    }
    return slots;
  }
  void release_all(void* pool, const std::vector<void*>& slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) (i % 2 == 0 ? maker() : user()).release(pool, slots[i]);
  }
  const PoolCalls& maker() const { return maker_[kind_]; }
  const PoolCalls& user() const { return user_[kind_]; }
};

TEST_P(PluginPools, UsedByBothSides_EachHandsOutItsOwnSlots) {
  void* const mine = maker().make(kSlots);
  void* const others = user().make(kSlots);
  // Either pool is used in this thread by the side that made it, and then the first one by the other side.
  maker().release(mine, maker().acquire(mine));
  user().release(others, user().acquire(others));
  for (int round = 0; round < 3; ++round) {
    const std::vector<void*> first = acquire_all(mine), second = acquire_all(others);
    if (strategies()[kind_].finds_last) {
      EXPECT_EQ(first.size(), kSlots);
      EXPECT_EQ(second.size(), kSlots);
    }
    EXPECT_GT(first.size(), kSlots / 2);
    std::set<void*> distinct(first.begin(), first.end());
    distinct.insert(second.begin(), second.end());
    EXPECT_EQ(distinct.size(), first.size() + second.size()) << "one slot was handed out twice";
    if (strategies()[kind_].bounded) {
      const auto [low, high] = std::minmax_element(first.begin(), first.end());
      for (void* const slot : second) EXPECT_FALSE(slot > *low && slot < *high) << "a slot of the other pool";
    }
    release_all(mine, first);
    release_all(others, second);
  }
  user().end(mine);  // by the side that did not make it
  user().end(others);
}

TEST_P(PluginPools, ThreadOfOtherSideEnds_NoSlotIsLost) {
  void* const pool = maker().make(kSlots);
  for (int round = 0; round < 4; ++round)
    std::thread([&] {
      void* const own = user().make(kSlots);
      user().release(own, user().acquire(own));
      release_all(pool, acquire_all(pool));
      void* const slot = user().acquire(pool);
      user().release(pool, slot);
      user().end(own);
    }).join();
  const std::vector<void*> all = acquire_all(pool);
  if (strategies()[kind_].finds_last) {
    EXPECT_EQ(all.size(), kSlots);
  }
  EXPECT_GT(all.size(), kSlots / 2);
  release_all(pool, all);
  maker().end(pool);
}

TEST_P(PluginPools, BothSidesAtOnce_NoSlotTwice) {
  void* const pool = maker().make(kSlots);
  std::vector<std::thread> threads;
  std::atomic<bool> twice{false};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const PoolCalls& calls = t % 2 == 0 ? maker() : user();
      for (int i = 0; i < 2000; ++i) {
        void* slots[7]{};
        for (void*& slot : slots)
          if ((slot = calls.acquire(pool)) != nullptr) std::memcpy(slot, &t, sizeof t);
        for (void* const slot : slots) {
          if (slot == nullptr) continue;
          if (std::memcmp(slot, &t, sizeof t) != 0) twice = true;
          calls.release(pool, slot);
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(twice);
  user().end(pool);
}

class PluginHeaps : public Plugin<HeapSide> {};

TEST_P(PluginHeaps, UsedAndEndedByOtherSide_MemoryStaysWithItsMaker) {
  const HeapCalls &maker = maker_.heaps[kind_], &user = user_.heaps[kind_];
  constexpr std::size_t kSizes[] = {16, 100, 3000, 40'000, 3'000'000};
  for (int round = 0; round < 3; ++round) {
    void* const first = maker.make();
    void* const second = user.make();
    std::vector<void*> blocks;
    for (int i = 0; i < 200; ++i)
      for (const std::size_t bytes : kSizes) {
        if (bytes > 10'000 && i % 20 != 0) continue;
        void* const block = (i % 2 == 0 ? maker : user).allocate(first, bytes);
        ASSERT_NE(block, nullptr);
        std::memset(block, i, bytes);
        blocks.push_back(block);
      }
    EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) (i % 3 == 0 ? maker : user).deallocate(first, blocks[i]);
    for (int i = 0; i < 100; ++i) ASSERT_NE(user.allocate(first, 64 * 1024), nullptr);
    maker.release_all(first);
    for (int i = 0; i < 100; ++i) ASSERT_NE(maker.allocate(first, 64 * 1024), nullptr);
    user.release_all(first);
    user.end(first);  // the other one's place in its registry stays sound
    maker.end(second);
  }
}

class PluginTimers : public Plugin<HeapSide> {};

TEST_P(PluginTimers, UsedByBothSides_EachFiresOnce) {
  const TimerCalls &maker = maker_.timers[kind_], &user = user_.timers[kind_];
  void* const timers = maker.make();
  void* const others = user.make();
  const auto now = timer::Clock::now();
  int fired = 0;
  std::vector<timer::TimerId> ids;
  for (int i = 0; i < 100; ++i) {
    const TimerCalls& calls = i % 2 == 0 ? maker : user;
    ids.push_back(calls.create(timers, [&fired] { ++fired; }));
    ASSERT_TRUE(static_cast<bool>(ids.back()));
    EXPECT_TRUE((i % 3 == 0 ? maker : user).set(timers, ids.back(), now + std::chrono::milliseconds(i)));
  }
  EXPECT_EQ(user.advance(timers, now + std::chrono::seconds(1)), 100U);
  EXPECT_EQ(fired, 100);
  for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_TRUE((i % 5 == 0 ? maker : user).destroy(timers, ids[i]));
  user.end(timers);
  maker.end(others);
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const auto [plugin, mode, plugin_makes, kind] = info.param;
  return std::string(plugin == 0 ? "Hidden" : "Default") + (mode == RTLD_LOCAL ? "Local" : "Global") +
         (plugin_makes ? "PluginMakes" : "ProgramMakes") + std::to_string(kind);
}
auto cases(std::size_t kinds) {
  return testing::Combine(testing::Values(0, 1), testing::Values(RTLD_LOCAL, RTLD_GLOBAL), testing::Bool(),
                          testing::Range<std::size_t>(0, kinds));
}
INSTANTIATE_TEST_SUITE_P(All, PluginPools, cases(pool::Strategies::kCount), name_of);
INSTANTIATE_TEST_SUITE_P(All, PluginHeaps, cases(kHeaps), name_of);
INSTANTIATE_TEST_SUITE_P(All, PluginTimers, cases(kTimers), name_of);

}  // namespace
}  // namespace freehold::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) freehold::test::g_plugins.emplace_back(argv[i]);
  return RUN_ALL_TESTS();
}
