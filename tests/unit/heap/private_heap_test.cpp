// SPDX-License-Identifier: MIT
// PrivateHeap's promises to threads: waiting for room, release and destruction by any of them, fork, bounded memory.
#include "freehold/heap/private_heap.hpp"

#include <cstdio>

#include "freehold/os/cpu.hpp"
#include "tests/support/child.hpp"
#include "tests/support/heaps.hpp"
#include "tests/support/inside.hpp"
#include "tests/support/pattern.hpp"
#include "tests/support/proc.hpp"
#include "tests/support/test.hpp"

namespace freehold::heap {
namespace {

using test::fill;
using test::intact;
using test::Random;

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;
#if defined(FREEHOLD_TEST_SANITIZED)
constexpr int kLess = 10;
#else
constexpr int kLess = 1;
#endif

// Threads that must end: a hang is a failure with a name.
class Threads {
 public:
  template <class F>
  void start(F f) {
    ++running_;
    threads_.emplace_back([this, f = std::move(f)] {
      f();
      --running_;
    });
  }
  [[nodiscard]] bool all_done_within(std::chrono::milliseconds time) const {
    const auto end = std::chrono::steady_clock::now() + time;
    while (running_ != 0) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  ~Threads() {
    if (!all_done_within(std::chrono::seconds(60))) {
      std::fprintf(stderr, "%d threads hang\n", running_.load());
      std::_Exit(1);
    }
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<int> running_{0};
  std::vector<std::thread> threads_;
};

std::vector<void*> allocate_all(PrivateHeap& heap, std::size_t bytes) {
  std::vector<void*> blocks;
  while (void* const block = heap.allocate(bytes)) blocks.push_back(block);
  return blocks;
}

// ---- waiting ----

// A heap that waits, full; filled by one that fails would be another heap, so the last blocks are counted first.
class Waiting : public testing::Test {
 protected:
  static constexpr std::size_t kLimit = 16 * test::kHeapPageBytes;

  // How many blocks of so many bytes a heap of that limit gives.
  static std::size_t room_for(std::size_t bytes) {
    PrivateHeap heap({.limit_bytes = kLimit});
    return allocate_all(heap, bytes).size();
  }
  // The same as in a heap that is filled: fewer may fit on more CPUs.
  void fill_with(std::size_t bytes) {
    for (std::size_t n = room_for(bytes); n > 0; --n) blocks_.push_back(heap_.allocate(bytes));
  }
  bool give_up() noexcept {
    ++asked_;
    return false;
  }

  std::atomic<int> asked_{0};  // on_limit is asked before anybody waits
  PrivateHeap heap_{{.limit_bytes = kLimit, .on_limit = [this] { return give_up(); }, .when_limited = WhenLimited::kWait}};
  std::vector<void*> blocks_;

  // Returns whether an allocation of `bytes` waits until free_some() was called.
  template <class F>
  void expect_waits(std::size_t bytes, const F& free_some) {
    std::atomic<void*> got{nullptr};
    const int asked = asked_;
    {
      Threads threads;
      threads.start([&] { got = heap_.allocate(bytes); });
      while (asked_ < asked + 2) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      EXPECT_EQ(got, nullptr) << "there was no room";
      free_some();
    }
    EXPECT_NE(got, nullptr);
    heap::Inside::check_invariants(heap_);
  }
};

TEST_F(Waiting, FreeOfALargeBlock_Wakes) {
  void* const large = heap_.allocate(kLimit - 8 * kKiB);
  ASSERT_NE(large, nullptr);
  blocks_.push_back(heap_.allocate(4000));
  expect_waits(9000, [&] { heap_.deallocate(large); });
}

TEST_F(Waiting, SeveralWaiters_EachGetsItsTurn) {
  fill_with(64);
  std::atomic<int> got{0};
  Threads threads;
  for (int i = 0; i < 6; ++i)
    threads.start([&] {
      void* const block = heap_.allocate(64);
      if (block != nullptr) ++got;
      heap_.deallocate(block);
    });
  while (asked_ < 6) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(got, 0);
  heap_.deallocate(blocks_.back(), 64);  // one slot, handed on from one to the next
  EXPECT_TRUE(threads.all_done_within(std::chrono::seconds(10)));
  EXPECT_EQ(got, 6);
}

// Many threads, little room, all sizes: a wake-up that is lost ends in a hang.
TEST_F(Waiting, MoreWishesThanRoom_NobodyHangs) {
  std::atomic<int> wrong{0};
  {
    Threads threads;
    for (unsigned t = 0; t < 4; ++t)
      threads.start([&, t] {
        Random random(t);
        for (int step = 0; step < 3000 / kLess; ++step) {
          static constexpr std::size_t kSizes[] = {16, 3000, 14'000, 40'000};
          const std::size_t bytes = kSizes[random.below(4)];
          void* const block = heap_.allocate(bytes);
          if (block == nullptr) {
            ++wrong;
            continue;
          }
          fill(block, bytes, t);
          if (step % 8 == 0) std::this_thread::yield();
          if (!intact(block, bytes, t)) ++wrong;
          if (step % 2 == 0)
            heap_.deallocate(block);
          else
            heap_.deallocate(block, bytes);
        }
      });
  }
  EXPECT_EQ(wrong, 0);
  heap::Inside::check_invariants(heap_);
  EXPECT_EQ(heap_.stats().live_objects, 0U);
}

// ---- threads ----

TEST(PrivateHeap, HundredThousandComeAndGoOnThirtyTwoThreads_Work) {
  constexpr int kHeaps = 100'000 / (kLess * 3) / 32;
  std::atomic<int> wrong{0};
  {
    Threads threads;
    for (int t = 0; t < 32; ++t)
      threads.start([&, t] {
        for (int i = 0; i < kHeaps; ++i) {
          PrivateHeap heap;
          void* const block = heap.allocate(static_cast<std::size_t>(i % 500));
          fill(block, static_cast<std::size_t>(i % 500), static_cast<std::uint64_t>(t));
          if (!intact(block, static_cast<std::size_t>(i % 500), static_cast<std::uint64_t>(t))) ++wrong;
          if (i % 4 == 0) heap.release_all();
          if (i % 4 == 1) heap.deallocate(block);
          if (heap.stats().live_objects != (i % 4 < 2 ? 0U : 1U)) ++wrong;
        }
      });
  }
  EXPECT_EQ(wrong, 0);
}

template <class Heap>
void expect_cheap() {
  constexpr std::size_t kHeaps = 100'000;
  static_assert(sizeof(Heap) <= 512);
  const std::align_val_t alignment{alignof(Heap)};
  auto* const heaps = static_cast<Heap*>(::operator new(kHeaps * sizeof(Heap), alignment));
  const std::size_t before = test::own_memory().resident;
  for (std::size_t i = 0; i < kHeaps; ++i) ::new (heaps + i) Heap;
  const std::size_t after = test::own_memory().resident;
  for (std::size_t i = 0; i < kHeaps; ++i) ASSERT_EQ(heaps[i].stats().held_bytes, 0U);
#if !defined(FREEHOLD_TEST_SANITIZED)
  EXPECT_LE(after - before, kHeaps * 512 + 64 * kKiB);
#else
  static_cast<void>(after - before);
#endif
  std::destroy_n(heaps, kHeaps);
  ::operator delete(heaps, alignment);
}
TEST(PrivateHeap, HundredThousandEmptyOnes_AtMost512BytesEach) { expect_cheap<PrivateHeap>(); }
TEST(OwnerLockedHeap, HundredThousandEmptyOnes_AtMost512BytesEach) { expect_cheap<OwnerLockedHeap>(); }

// ---- figures for readers outside the process ---------------------------------------------------------------------------

TEST(PrivateHeapLive, LargeBlocksComeAndGo_TheirNumberAndBytes) {
  PrivateHeap heap;
  LiveHeapLayout layout{};
  heap::Inside::add_to(heap, layout);
  const auto expect = [&](std::uint64_t blocks, std::uint64_t bytes) {
    const auto figure = [&](std::uint32_t at) {
      std::uint64_t value = 0;
      std::memcpy(&value, reinterpret_cast<const char*>(&heap) + at, sizeof value);
      return value;
    };
    EXPECT_EQ(figure(layout.large_blocks), blocks);
    EXPECT_EQ(figure(layout.large_bytes), bytes);
    EXPECT_EQ(heap.stats().large_blocks, blocks);
  };
  void* const first = heap.allocate(kMiB);
  expect(1, kMiB);
  void* const second = heap.allocate(2 * kMiB);
  expect(2, 3 * kMiB);
  heap.deallocate(first, kMiB);
  expect(1, 2 * kMiB);
  heap.deallocate(second, 2 * kMiB);
  expect(0, 0);
  (void)heap.allocate(kMiB);
  heap.release_all();
  expect(0, 0);
}

// ---- registry and fork ----

std::vector<std::string> names() {
  std::vector<std::string> all;
  for_each_heap(
      [&all](const HeapStats& stats) { all.push_back(stats.name + std::string(":") + std::to_string(stats.live_objects)); });
  return all;
}

TEST(Registry, HeapsComeAndGo_ThoseThatLiveAreReportedYoungestFirst) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(), Names());
  PrivateHeap first({.name = "first"});
  auto second = std::make_unique<PrivateHeap>(HeapOptions{.name = "second"});
  OwnerLockedHeap other({.name = "owner-locked"});
  PrivateHeap third({.name = "third"});
  static_cast<void>(first.allocate(10));
  static_cast<void>(third.allocate(100'000));
  static_cast<void>(third.allocate(1));
  EXPECT_EQ(names(), Names({"third:2", "second:0", "first:1"}));
  second.reset();
  EXPECT_EQ(names(), Names({"third:2", "first:1"}));
}

TEST(PrivateHeap, ForkWhileThreadsAllocate_ChildUsesTheHeap) {
  PrivateHeap heap;
  std::atomic<bool> done{false};
  void* const kept = heap.allocate(300);
  fill(kept, 300, 77);
  Threads threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.start([&, t] {
      Random random(t);
      std::vector<void*> blocks(200);
      while (!done) {
        void*& block = blocks[random.below(blocks.size())];
        if (block == nullptr) {
          block = heap.allocate(random.below(random.below(100) == 0 ? 50'000 : 2000));
        } else {
          heap.deallocate(block);
          block = nullptr;
        }
        if (random.below(1000) == 0) static_cast<void>(PrivateHeap().allocate(0));
      }
      for (void* block : blocks) heap.deallocate(block);
    });
  for (int i = 0; i < 15; ++i) {
    const auto use_heap = [&] {
      bool good = intact(kept, 300, 77);
      heap::Inside::check_invariants(heap);
      for (std::size_t n = 0; n < 2000; ++n) {
        void* const block = heap.allocate(n);
        good &= block != nullptr;
        fill(block, n, n);
        good &= intact(block, n, n);
        heap.deallocate(block, n);
      }
      heap.deallocate(kept);
      heap.trim();
      {
        PrivateHeap own;
        good &= own.allocate(10) != nullptr;
      }
      heap.release_all();
      good &= heap.stats().live_objects == 0;
      return good ? 0 : 1;
    };
    EXPECT_EQ(test::run_in_child(use_heap), 0) << "-14: it hung";
    if (HasFailure()) break;
  }
  done = true;
}

// One thread plays two, and says which one it is.
struct TwoThreads : sync::NativeAtomics {
  static inline unsigned who = 0;
  static std::uint32_t thread_number() noexcept { return who; }
  template <class T>
  static T& per_thread() noexcept {
    static T objects[2];
    return objects[who];
  }
};
using HeapOfTwo = BasicPrivateHeap<TwoThreads, HeapGeometry, EngineSlabs, heap::Unregistered>;

// Slots of a run that another shard began and never used.
TEST(PrivateHeap, AtTheLimit_UnusedSlotsOfAnotherShardAreFound) {
  const auto room = [](unsigned first, unsigned others) {
    HeapOfTwo heap({.limit_bytes = test::kHeapPageBytes});
    TwoThreads::who = first;
    unsigned n = heap.allocate(64) != nullptr ? 1 : 0;
    TwoThreads::who = others;
    while (heap.allocate(64) != nullptr) ++n;
    TwoThreads::who = 0;
    return n;
  };
  EXPECT_GT(room(0, 0), 1U);
  EXPECT_EQ(room(0, 1), room(0, 0));
}

template <class Heap>
void expect_large_block_shrinks() {
  Heap heap;
  void* block = heap.allocate(kMiB);
  fill(block, kMiB, 1);
  block = heap.reallocate(block, 40'000);
  ASSERT_NE(block, nullptr);
  EXPECT_LT(heap.stats().used_bytes, 100'000U);
  void* const same = heap.reallocate(block, 39'000);
  EXPECT_EQ(same, block) << "not worth a copy";
  heap.deallocate(same);
  EXPECT_EQ(heap.stats().used_bytes, 0U);
}
TEST(PrivateHeap, LargeBlockShrinksToAFraction_ItsMemoryGoesBack) { expect_large_block_shrinks<PrivateHeap>(); }
TEST(OwnerLockedHeap, LargeBlockShrinksToAFraction_ItsMemoryGoesBack) { expect_large_block_shrinks<OwnerLockedHeap>(); }

}  // namespace
}  // namespace freehold::heap
