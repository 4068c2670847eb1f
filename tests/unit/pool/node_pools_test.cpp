// SPDX-License-Identifier: MIT
// Containers on pools.
#include "freehold/pool/node_pools.hpp"

#include <list>
#include <memory_resource>
#include <unordered_map>

#include "freehold/pool/single_thread.hpp"
#include "lab/strategies/registry.hpp"
#include "tests/support/test.hpp"

namespace freehold::pool {
namespace {

template <class Map>
void fill_and_check(Map& map) {
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 5'000; ++i) map.emplace(i * 7 % 5'000, i);
    EXPECT_EQ(map.size(), 5'000U);
    for (int i = 0; i < 5'000; i += 2) map.erase(i);
    EXPECT_EQ(map.count(4'001), 1U);
    EXPECT_EQ(map.count(4'000), 0U);
    map.clear();
  }
}
using Pair = std::pair<const int, int>;

TEST(NodePools, StandardContainers_ThroughTheAllocator) {
  NodePools<> pools(5'000);
  std::map<int, int, std::less<>, PoolAllocator<Pair>> map{pools};
  fill_and_check(map);
  std::unordered_map<int, int, std::hash<int>, std::equal_to<>, PoolAllocator<Pair>> hashed{PoolAllocator(pools)};
  fill_and_check(hashed);
  std::list<std::string, PoolAllocator<std::string>> list{pools};
  for (int i = 0; i < 100; ++i) list.push_back(std::to_string(i));
  auto moved = std::move(list);
  EXPECT_EQ(moved.back(), "99");
  EXPECT_EQ(moved.get_allocator(), pools.get_allocator());
  std::vector<int, PoolAllocator<int>> vector{pools};
  for (int i = 0; i < 1'000; ++i) vector.push_back(i);
  EXPECT_EQ(vector[999], 999);
  const auto shared = std::allocate_shared<std::string>(PoolAllocator<std::string>(pools), "one");
  EXPECT_EQ(*shared, "one");
}

TEST(NodePools, Full_BadAllocAndTheContainerIsAsBefore) {
  NodePools<> pools(100);
  std::set<int, std::less<>, PoolAllocator<int>> set{pools};
  for (int i = 0; i < 100; ++i) set.insert(i);
  EXPECT_THROW(set.insert(100), std::bad_alloc);
  EXPECT_EQ(set.size(), 100U);
  set.erase(50);
  set.insert(100);
  EXPECT_EQ(set.size(), 100U);
}

TEST(NodePools, NodesComeFromThePoolOfTheirSize) {
  NodePools<NativePool<LockFreeBits>> pools(10);
  using Allocator = PoolAllocator<std::uint64_t, NativePool<LockFreeBits>>;
  Allocator allocator(pools);
  EXPECT_EQ(pools.pool_of(8), nullptr);
  std::uint64_t* const number = allocator.allocate(1);
  ASSERT_NE(pools.pool_of(8), nullptr);
  EXPECT_EQ(pools.pool_of(8), pools.pool_of(16));
  EXPECT_EQ(pools.pool_of(17), nullptr);
  std::uint64_t* const many = allocator.allocate(3);  // not a node
  EXPECT_EQ(pools.pool_of(17), nullptr);
  allocator.deallocate(many, 3);
  allocator.deallocate(number, 1);
  struct Large {
    char bytes[513];
  };
  PoolAllocator<Large, NativePool<LockFreeBits>> large(allocator);
  large.deallocate(large.allocate(1), 1);
  struct alignas(64) Aligned {
    char bytes[64];
  };
  PoolAllocator<Aligned, NativePool<LockFreeBits>> aligned(allocator);
  Aligned* const one = aligned.allocate(1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one) % 64, 0U);
  aligned.deallocate(one, 1);
  EXPECT_EQ(pools.pool_of(64), nullptr);
}

TEST(NodePools, NumbersAtTheEnds_OneNodeNoBytesAndTooMany) {
  NodePools<> pools(0);  // has room for one
  PoolAllocator<std::uint64_t> allocator(pools);
  std::uint64_t* const one = allocator.allocate(1);
  EXPECT_THROW((void)allocator.allocate(1), std::bad_alloc);
  allocator.deallocate(one, 1);
  EXPECT_THROW((void)allocator.allocate(~std::size_t{0} / 4), std::bad_array_new_length);
  PoolResource resource(pools);
  void* const none = resource.allocate(0, 1);
  EXPECT_NE(none, nullptr);
  EXPECT_NE(pools.pool_of(0), nullptr);
  resource.deallocate(none, 0, 1);
}

TEST(PoolResource, PmrContainers) {
  NodePools<> pools(10'000);
  PoolResource resource(pools);
  std::pmr::map<int, int> map(&resource);
  fill_and_check(map);
  std::pmr::vector<std::pmr::string> words(&resource);
  for (int i = 0; i < 1'000; ++i) words.emplace_back(std::string(static_cast<std::size_t>(i), 'x'));
  EXPECT_EQ(words[999].size(), 999U);
  EXPECT_NE(pools.pool_of(48), nullptr);
  PoolResource other(pools);
  EXPECT_TRUE(resource.is_equal(resource));
  EXPECT_FALSE(resource.is_equal(other));
}

// Slots of 48 bytes lie 48 bytes apart: every second one is not aligned to 32.
TEST(PoolResource, AlignedBeyondAStep_ComesFromElsewhere) {
  NodePools<> pools(100);
  PoolResource resource(pools);
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(resource.allocate(48, 32));
  EXPECT_EQ(pools.pool_of(48), nullptr);
  for (void* const block : blocks) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 32, 0U);
    resource.deallocate(block, 48, 32);
  }
  resource.deallocate(resource.allocate(48, 16), 48, 16);
  EXPECT_NE(pools.pool_of(48), nullptr);
}

TEST(NodePools, FromManyThreads_OnePoolEach) {
  NodePools<> pools(40'000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pools] {
      std::map<int, int, std::less<>, PoolAllocator<Pair>> map{pools};
      fill_and_check(map);
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_NE(pools.pool_of(48), nullptr);
  EXPECT_LE(pools.pool_of(48)->peak_slots(), 40'000U);
}

TEST(NodePools, ForOneThread_OverSingleThread) {
  NodePools<SingleThreadPool> pools(5'000);
  std::map<int, int, std::less<>, PoolAllocator<Pair, SingleThreadPool>> map{pools};
  fill_and_check(map);
  EXPECT_EQ(pools.pool_of(48)->in_use(), 0U);
}

}  // namespace
}  // namespace freehold::pool
