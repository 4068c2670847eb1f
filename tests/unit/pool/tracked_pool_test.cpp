// SPDX-License-Identifier: MIT
#include "freehold/pool/tracked_pool.hpp"

#include <stdexcept>

#include "freehold/pool/single_thread.hpp"
#include "tests/support/test.hpp"

namespace freehold::pool {
namespace {

struct Item {
  explicit Item(int value) : value(value) {
    if (value < 0) throw std::invalid_argument("negative");
    ++alive;
  }
  ~Item() { --alive; }
  Item(const Item&) = delete;
  Item& operator=(const Item&) = delete;
  int value;
  static inline std::atomic<int> alive{0};
};

TEST(TrackedPool, Stats_AreExact) {
  TrackedPool<Item> pool(3, {.name = "items"});
  {
    const auto a = pool.make(1), b = pool.make(2), c = pool.make(3);
    EXPECT_EQ(pool.make(4), nullptr);
    EXPECT_EQ(pool.make(-1), nullptr) << "full, before anything is constructed";
  }
  const auto again = pool.make(5);
  const PoolStats stats = pool.stats();
  EXPECT_EQ(std::string_view(stats.name), "items");
  EXPECT_EQ(stats.capacity, 3U);
  EXPECT_EQ(stats.live, 1U);
  EXPECT_EQ(stats.peak_live, 3U);
  EXPECT_EQ(stats.made, 4U);
  EXPECT_EQ(stats.full, 2U);
  EXPECT_EQ(pool.live(), 1U);
}

TEST(TrackedPool, ForEach_EveryLivingOneOldestFirst) {
  TrackedPool<Item> pool(100);
  std::vector<TrackedPool<Item>::Handle> handles;
  for (int i = 0; i < 10; ++i) handles.push_back(pool.make(i));
  handles.erase(handles.begin() + 4);
  std::vector<int> seen;
  pool.for_each([&](Item& item) { seen.push_back(item.value); });
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 3, 5, 6, 7, 8, 9}));
}

// An object that looks at its pool while it ends.
struct Leaver {
  Leaver(TrackedPool<Leaver>& pool, std::vector<unsigned>& seen) : pool(pool), seen(seen) {}
  ~Leaver() {
    unsigned others = 0;
    pool.for_each([&](const Leaver& each) { others += &each == this ? 100 : 1; });
    seen.push_back(others);
  }
  Leaver(const Leaver&) = delete;
  Leaver& operator=(const Leaver&) = delete;
  TrackedPool<Leaver>& pool;
  std::vector<unsigned>& seen;
};
TEST(TrackedPool, ObjectThatEnds_IsNotVisitedAnyMore) {
  std::vector<unsigned> seen;
  {
    TrackedPool<Leaver> pool(3);
    pool.make(pool, seen).reset();
    auto first = pool.make(pool, seen);
    (void)pool.construct(pool, seen);
    first.reset();
  }
  EXPECT_EQ(seen, (std::vector<unsigned>{0, 1, 0}));
}

TEST(TrackedPool, EndOfThePool_EndsWhatIsLeft) {
  {
    TrackedPool<Item, SingleThreadPool> pool(50);
    for (int i = 0; i < 50; ++i) ASSERT_NE(pool.construct(i), nullptr);
    EXPECT_EQ(Item::alive, 50);
    EXPECT_EQ(pool.destroy_all(), 50U);
    EXPECT_EQ(Item::alive, 0);
    for (int i = 0; i < 50; ++i) ASSERT_NE(pool.construct(i), nullptr);
  }
  EXPECT_EQ(Item::alive, 0);
}

TEST(TrackedPool, ManyThreads_CountsAddUp) {
  TrackedPool<Item> pool(1'000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool] {
      std::vector<TrackedPool<Item>::Handle> mine;
      for (int i = 0; i < 5'000; ++i) {
        mine.push_back(pool.make(i));
        if (mine.size() == 200) mine.clear();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const PoolStats stats = pool.stats();
  EXPECT_EQ(stats.live, 0U);
  EXPECT_EQ(stats.made, 20'000U);
  EXPECT_GE(stats.peak_live, 200U);
  EXPECT_LE(stats.peak_live, 800U);
  EXPECT_EQ(Item::alive, 0);
}

}  // namespace
}  // namespace freehold::pool
