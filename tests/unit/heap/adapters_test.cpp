// SPDX-License-Identifier: MIT
// Arrays, handles by a base, deduced allocators, and the adapters before heaps and resources.
#include "freehold/heap/adapters.hpp"

#include <list>
#include <memory_resource>
#include <new>
#include <stdexcept>

#include "freehold/heap/heap_allocator.hpp"
#include "freehold/heap/heap_resource.hpp"
#include "freehold/heap/in_heap.hpp"
#include "tests/support/test.hpp"

namespace freehold::heap {
namespace {

struct Part {
  Part() {
    if (alive == limit) throw std::runtime_error("enough");
    ++alive;
  }
  ~Part() { --alive; }
  int value = 7;
  static inline int alive = 0, limit = 1'000'000;
};

TEST(HeapArrays, MadeAndEnded_NothingIsLeft) {
  PrivateHeap shared;
  OwnerLockedHeap locked;
  {
    const auto a = make_unique<Part[]>(shared, 100);
    const auto b = make_unique<Part[]>(locked, 10'000);
    EXPECT_EQ(Part::alive, 10'100);
    EXPECT_EQ(a[99].value + b[9'999].value, 14);
    EXPECT_EQ(a.get_deleter().size(), 100U);
    UniquePtr<Part[]> moved = make_unique<Part[]>(shared, 3);
    moved = make_unique<Part[]>(shared, 5);
    EXPECT_EQ(Part::alive, 10'105);
    EXPECT_NE(make_unique<int[]>(shared, 0), nullptr);
  }
  EXPECT_EQ(Part::alive, 0);
  EXPECT_EQ(shared.stats().live_objects + locked.stats().live_objects, 0U);
  EXPECT_THROW((void)make_unique<int[]>(shared, ~std::size_t{0} / 2), std::bad_array_new_length);
  PrivateHeap full({.limit_bytes = 0});
  EXPECT_THROW((void)make_unique<int[]>(full, 10), std::bad_alloc);
}

TEST(HeapArrays, ElementThrows_NothingIsLeft) {
  PrivateHeap heap;
  Part::limit = 5;
  EXPECT_THROW((void)make_unique<Part[]>(heap, 10), std::runtime_error);
  Part::limit = 1'000'000;
  EXPECT_EQ(Part::alive, 0);
  EXPECT_EQ(heap.stats().live_objects, 0U);
}

struct Name {
  int name = 1;
};
struct Shape {
  int corners = 0;
};
struct Square : Name, Shape {
  Square() { corners = 4; }
  ~Square() { ++ended; }
  static inline int ended = 0;
};

TEST(HeapPtr, OfABase_EndsTheWholeObjectInItsHeap) {
  PrivateHeap shared;
  OwnerLockedHeap locked;
  Square::ended = 0;
  {
    std::vector<HeapPtr<Shape>> shapes;
    shapes.push_back(make_unique<Square>(shared));
    shapes.push_back(make_unique<Square>(locked));
    for (const auto& shape : shapes) EXPECT_EQ(shape->corners, 4);
  }
  EXPECT_EQ(Square::ended, 2);
  EXPECT_EQ(shared.stats().live_objects + locked.stats().live_objects, 0U);
}

TEST(FallbackHeap, FirstIsFull_SecondGivesAndEachGetsItsOwnBack) {
  PrivateHeap first({.limit_bytes = 256 << 10}), second;
  FallbackHeap both(first, second);
  {
    using Pair = std::pair<const int, int>;
    std::map<int, int, std::less<>, HeapAllocator<Pair, FallbackHeap<>>> map{HeapAllocator<Pair, FallbackHeap<>>(both)};
    for (int i = 0; i < 20'000; ++i) map.emplace(i, i);
    EXPECT_GT(first.stats().live_objects, 1'000U);
    EXPECT_GT(second.stats().live_objects, 1'000U);
    EXPECT_EQ(first.stats().live_objects + second.stats().live_objects, 20'000U);
    for (int i = 0; i < 20'000; i += 3) map.erase(i);
    for (int i = 0; i < 20'000; i += 3) map.emplace(i, -i);
    EXPECT_EQ(map.at(9), -9);
  }
  EXPECT_EQ(first.stats().live_objects + second.stats().live_objects, 0U);
  void* const small = both.allocate(100);
  std::memset(small, 7, 100);
  EXPECT_EQ(&both.home(small), &first);
  void* const grown = both.reallocate(small, 1 << 20);
  ASSERT_NE(grown, nullptr);
  EXPECT_EQ(&both.home(grown), &second);
  EXPECT_EQ(static_cast<char*>(grown)[99], 7);
  both.deallocate(grown);
  EXPECT_EQ(first.stats().live_objects + second.stats().large_blocks, 0U);
}

TEST(FallbackHeap, Reallocate_StaysWhereThereIsRoomMovesBothWaysAndMayFail) {
  PrivateHeap first({.limit_bytes = 1 << 20}), second({.limit_bytes = 1 << 20});
  FallbackHeap both(first, second);
  auto* block = static_cast<unsigned char*>(both.reallocate(nullptr, 5'000));
  ASSERT_NE(block, nullptr);
  for (std::size_t i = 0; i < 5'000; ++i) block[i] = static_cast<unsigned char>(i);
  const auto holds = [&block](std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      if (block[i] != static_cast<unsigned char>(i)) return false;
    return true;
  };
  EXPECT_EQ(&both.home(block), &first);
  block = static_cast<unsigned char*>(both.reallocate(block, 9'000));
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(&both.home(block), &first) << "there is room";
  EXPECT_TRUE(holds(5'000));

  void* const much = first.allocate(800 << 10);
  ASSERT_NE(much, nullptr);
  block = static_cast<unsigned char*>(both.reallocate(block, 600 << 10));
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(&both.home(block), &second);
  EXPECT_TRUE(holds(5'000));
  EXPECT_EQ(both.reallocate(block, 4 << 20), nullptr) << "neither heap has room";
  EXPECT_TRUE(holds(5'000));
  EXPECT_EQ(&both.home(block), &second);

  first.deallocate(much);
  void* const more = second.allocate(300 << 10);
  ASSERT_NE(more, nullptr);
  block = static_cast<unsigned char*>(both.reallocate(block, 900 << 10));
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(&both.home(block), &first) << "and back";
  EXPECT_TRUE(holds(5'000));
  second.deallocate(more);
  both.deallocate(block);
  EXPECT_EQ(first.stats().live_objects + second.stats().live_objects, 0U);
  EXPECT_EQ(first.stats().large_blocks + second.stats().large_blocks, 0U);
}

TEST(CountingResource, CountsAndLimits) {
  PrivateHeap heap;
  HeapResource resource(heap);
  CountingResource counted(resource, 1'000);
  void* const a = counted.allocate(600, 8);
  EXPECT_THROW((void)counted.allocate(401, 8), std::bad_alloc);
  void* const b = counted.allocate(400, 8);
  ResourceStats stats = counted.stats();
  EXPECT_EQ(stats.live_objects, 2U);
  EXPECT_EQ(stats.live_bytes, 1'000U);
  EXPECT_EQ(stats.refused, 1U);
  counted.deallocate(a, 600, 8);
  counted.deallocate(b, 400, 8);
  stats = counted.stats();
  EXPECT_EQ(stats.live_bytes + stats.live_objects, 0U);
  EXPECT_EQ(stats.peak_bytes, 1'000U);
  EXPECT_EQ(stats.allocations, 2U);
  EXPECT_EQ(stats.limit_bytes, 1'000U);
  EXPECT_THROW((void)counted.allocate(~std::size_t{0} / 2, 8), std::bad_alloc);
}

TEST(CountingResource, ManyThreads_TheLimitHoldsAndCountsAddUp) {
  PrivateHeap heap;
  HeapResource resource(heap);
  CountingResource counted(resource, 10'000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&counted] {
      for (int i = 0; i < 5'000; ++i) {
        try {
          void* const block = counted.allocate(3'000, 16);
          counted.deallocate(block, 3'000, 16);
        } catch (const std::bad_alloc&) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const ResourceStats stats = counted.stats();
  EXPECT_LE(stats.peak_bytes, 10'000U);
  EXPECT_EQ(stats.live_bytes + stats.live_objects, 0U);
  EXPECT_EQ(stats.allocations + stats.refused, 20'000U);
}

}  // namespace
}  // namespace freehold::heap
