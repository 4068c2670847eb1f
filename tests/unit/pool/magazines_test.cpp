// SPDX-License-Identifier: MIT
// Magazines and what threads keep: more pools than a thread's table has entries, pools that end before their threads and
// threads that end before their pools, both at once, and uses that come after a thread's end has begun.
#include "freehold/strategies/magazines.hpp"
#include "tests/support/strategies.hpp"
#include "tests/support/test.hpp"

namespace freehold::test {
namespace {

using Pool = pool::Magazines::Pool<sync::NativeAtomics>;

void expect_all(Pool& pool) {
  const std::vector<void*> slots = acquire_all(pool, pool.capacity() + 1);
  EXPECT_EQ(slots.size(), pool.capacity());
  EXPECT_EQ(std::set<void*>(slots.begin(), slots.end()).size(), slots.size());
  for (void* slot : slots) pool.release(slot);
}

TEST(Magazines, MorePoolsThanNumbers_TheOthersWorkWithoutCaches) {
  std::vector<std::unique_ptr<Pool>> pools;
  for (unsigned i = 0; i < pool::PoolDirectory::kPools + 10; ++i)
    pools.push_back(std::make_unique<Pool>(pool::PoolShape{.slots = 100, .slot_bytes = 8, .alignment = 8}));
  for (auto& pool : pools) expect_all(*pool);
  // The last ones have no cache, so another thread finds everything at once.
  std::thread([&] { expect_all(*pools.back()); }).join();
  // Numbers that become free are used again, and old entries do no harm.
  pools.erase(pools.begin(), pools.begin() + 20);
  for (int i = 0; i < 20; ++i)
    pools.push_back(std::make_unique<Pool>(pool::PoolShape{.slots = 50, .slot_bytes = 8, .alignment = 8}));
  for (auto& pool : pools) expect_all(*pool);
}

TEST(Magazines, PoolEndsBeforeItsThreads_TheyEndInPeace) {
  std::atomic<int> step{0};
  auto pool = std::make_unique<Pool>(pool::PoolShape{.slots = 100, .slot_bytes = 8, .alignment = 8});
  std::thread other([&] {
    expect_all(*pool);
    step = 1;
    step.notify_all();
    step.wait(1);
  });
  step.wait(0);
  pool = std::make_unique<Pool>(pool::PoolShape{.slots = 100, .slot_bytes = 8, .alignment = 8});  // at the same number
  step = 2;
  step.notify_all();
  other.join();
  expect_all(*pool);
}

TEST(Magazines, PoolsAndThreadsEndAtOnce_NoneTouchesTheOther) {
  for (int round = 0; round < 200; ++round) {
    auto pool = std::make_unique<Pool>(pool::PoolShape{.slots = 100, .slot_bytes = 8, .alignment = 8});
    std::atomic<unsigned> ready{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&, mine = pool.get()] {
        for (int k = 0; k < 10; ++k) mine->release(mine->acquire());
        ready.fetch_add(1, std::memory_order_release);
      });
    }
    while (ready.load(std::memory_order_acquire) != 2) std::this_thread::yield();
    pool.reset();
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace freehold::test
