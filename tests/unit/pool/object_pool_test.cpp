// SPDX-License-Identifier: MIT
#include "freehold/pool/object_pool.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <barrier>
#include <fstream>
#include <stdexcept>

#include "lab/strategies/registry.hpp"
#include "tests/support/test.hpp"

namespace freehold::pool {
namespace {

// Counts its living copies.
struct Counted {
  explicit Counted(int value) : value(value) { ++alive; }
  ~Counted() { --alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  int value;
  static inline std::atomic<int> alive{0};
};

TEST(ObjectPool, HandleEnds_ObjectEndsAndSlotIsFree) {
  ObjectPool<Counted> pool(1);
  {
    const auto first = pool.make(7);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(first->value, 7);
    EXPECT_EQ(Counted::alive, 1);
    EXPECT_EQ(pool.make(8), nullptr) << "one slot, two objects";
    EXPECT_EQ(Counted::alive, 1);
  }
  EXPECT_EQ(Counted::alive, 0);
  EXPECT_NE(pool.make(9), nullptr);
}

TEST(ObjectPool, Full_NullOrBadAllocAsTold) {
  ObjectPool<Counted> quiet(2), loud(2, {.when_full = WhenFull::kThrow});
  const auto a = quiet.make(1), b = quiet.make(2), c = loud.make(3), d = loud.make(4);
  EXPECT_EQ(quiet.make(5), nullptr);
  EXPECT_THROW((void)loud.make(6), std::bad_alloc);
  EXPECT_EQ(Counted::alive, 4);
}

// A type that names the handles of its pool before it is complete.
struct Tree {
  ObjectPool<Tree>::Handle left, right;
  int value = 0;
};
class Declared;
struct HoldsDeclared {
  ObjectPool<Declared>::Handle handle;
  HoldsDeclared();
  ~HoldsDeclared();
};
class Declared {};
HoldsDeclared::HoldsDeclared() = default;
HoldsDeclared::~HoldsDeclared() = default;

TEST(ObjectPool, RecursiveAndForwardDeclaredTypes_HaveHandles) {
  ObjectPool<Tree> pool(3);
  auto root = pool.make();
  root->left = pool.make();
  root->left->right = pool.make();
  EXPECT_EQ(pool.make(), nullptr);
  root.reset();
  ObjectPool<Tree>::Handle all[] = {pool.make(), pool.make(), pool.make()};
  for (const auto& each : all) EXPECT_NE(each, nullptr) << "the whole tree ended";
  EXPECT_EQ(HoldsDeclared().handle, nullptr);
}

TEST(ObjectPool, OverAlignedType_AlignedAndDistinct) {
  struct alignas(256) Wide {
    std::uint64_t values[40];
  };
  ObjectPool<Wide> pool(100);
  std::vector<ObjectPool<Wide>::Handle> all;
  std::set<Wide*> places;
  for (int i = 0; i < 100; ++i) {
    all.push_back(pool.make());
    ASSERT_NE(all.back(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all.back().get()) % 256, 0u);
    EXPECT_TRUE(places.insert(all.back().get()).second);
  }
  EXPECT_EQ(pool.make(), nullptr);
}

// The bound that the pool states: a thread's array takes a word of 64 slots at a time.
TEST(ObjectPool, HighWaterOfEightThreadsWithOneObjectEach_AtMostAWordForEachThread) {
  constexpr unsigned kThreads = 8;
  auto pool = ObjectPool<std::uint64_t>::growing(std::size_t{1} << 20);
  std::barrier all_hold(kThreads);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1'000; ++i) {
        const auto object = pool.make();
        EXPECT_NE(object, nullptr);
        if (i == 500) all_hold.arrive_and_wait();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(pool.peak_slots(), kThreads);
  EXPECT_LE(pool.peak_slots(), 64U * kThreads);
}

TEST(ObjectPool, Growing_TakesMemoryAsNeededUpToTheLimit) {
  constexpr std::size_t kLimit = std::size_t{1} << 24;
  auto pool = ObjectPool<std::uint64_t>::growing(kLimit);
  EXPECT_EQ(pool.capacity(), kLimit);
  EXPECT_EQ(pool.peak_slots(), 0u);
  std::vector<ObjectPool<std::uint64_t>::Handle> held;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    held.push_back(pool.make(i));
    ASSERT_NE(held.back(), nullptr);
  }
  for (std::uint64_t i = 0; i < held.size(); ++i) EXPECT_EQ(*held[i], i);
  EXPECT_GE(pool.peak_slots(), 100'000u);
  EXPECT_LE(pool.peak_slots(), 100'000u * 9 / 8 + 128 + 64);
  held.clear();
  EXPECT_GT(pool.trim(), 100'000u * sizeof(std::uint64_t) / 2) << "free blocks go back to the system";
  EXPECT_NE(pool.make(1u), nullptr);
}

// The system refuses memory during the growth: every slot that was handed out can be written, then no slot is free.
TEST(BestPool, GrowingWhileMemoryIsRefused_NullAndLaterAgain) {
#if defined(FREEHOLD_TEST_SANITIZED)
  GTEST_SKIP() << "a sanitizer needs memory itself";
#endif
  const auto grow = [] {
    NativePool<Best> pool({.slots = 1 << 20, .slot_bytes = 64, .alignment = 64}, Growth::kGrowing);
    const auto use_all = [&pool](std::size_t most) {
      std::size_t n = 0;
      for (void* slot; n < most && (slot = pool.acquire()) != nullptr; ++n) std::memset(slot, 1, 64);
      return n;
    };
    if (use_all(1000) != 1000) ::_exit(1);
    rlimit former{};
    if (::getrlimit(RLIMIT_DATA, &former) != 0) ::_exit(2);
    const rlimit none{1, former.rlim_max};  // Linux takes 0 for no limit, for Valgrind's sake
    if (::setrlimit(RLIMIT_DATA, &none) != 0) ::_exit(3);
    if (use_all(1 << 20) >= 2000) ::_exit(4);
    if (::setrlimit(RLIMIT_DATA, &former) != 0) ::_exit(5);
    if (use_all(10'000) != 10'000) ::_exit(6);
    ::_exit(0);
  };
  EXPECT_EXIT(grow(), ::testing::ExitedWithCode(0), "");
}

template <class P>
void expect_refusal(const PoolShape& shape) {
  EXPECT_EXIT(P{shape}, testing::KilledBySignal(SIGABRT), "slots and slot_bytes are 1 at least") << shape.slots;
}
TEST(Pools, ShapeThatIsNone_EndsWithTheReason) {
  for (const PoolShape& shape :
       {PoolShape{.slots = 10}, PoolShape{.slot_bytes = 48}, PoolShape{.slots = 10, .slot_bytes = 48, .alignment = 24}}) {
    expect_refusal<NativePool<Best>>(shape);
    expect_refusal<NativePool<TaggedStack>>(shape);
    expect_refusal<SingleThreadPool>(shape);
  }
}

// The pools beyond those with a place have arrays, too, which leave with their thread and end with their pool.
TEST(ObjectPool, MorePoolsThanPlaces_ThreadsAndPoolsEnd_NothingIsLost) {
  std::vector<std::unique_ptr<ObjectPool<int>>> pools;
  for (int i = 0; i < 400; ++i) pools.push_back(std::make_unique<ObjectPool<int>>(64));
  std::atomic<int> stage{0};
  std::thread lives([&] {
    for (int round = 1; round <= 3; ++round) {
      for (auto& pool : pools)
        for (int k = 0; k < 5; ++k) EXPECT_NE(pool->make(k), nullptr);
      stage = 2 * round - 1;
      stage.notify_all();
      stage.wait(2 * round - 1);
    }
  });
  for (int round = 1; round <= 3; ++round) {
    while (stage != 2 * round - 1) std::this_thread::yield();
    std::thread([&] {
      for (auto& pool : pools) EXPECT_NE(pool->make(1), nullptr);
    }).join();
    for (auto& pool : pools) {
      std::vector<ObjectPool<int>::Handle> all;
      while (auto object = pool->make(1)) all.push_back(std::move(object));
      EXPECT_EQ(all.size(), 64u);
    }
    // While the other thread lives, and has arrays of these.
    for (std::size_t i = 100; i < pools.size(); i += 3) pools[i] = std::make_unique<ObjectPool<int>>(64);
    stage = 2 * round;
    stage.notify_all();
  }
  lives.join();
}

TEST(BestPool, SumsThatOverflow_BadAlloc) {
  constexpr std::size_t kMost = ~std::size_t{0};
  EXPECT_THROW(NativePool<Best> pool({.slots = std::size_t{1} << 20, .slot_bytes = std::size_t{1} << 50}), std::bad_alloc);
  EXPECT_THROW(const Memory memory(kMost - 100, 8), std::bad_alloc);
  EXPECT_THROW(const Memory memory(std::size_t{1} << 60, 8), std::bad_alloc) << "more than there are addresses";
  EXPECT_THROW(const ZeroedArray<std::uint64_t> array(kMost / 4), std::bad_alloc);
}

TEST(ObjectPool, OfNone_IsAlwaysFull) {
  for_each_strategy([]<class S>() {
    if constexpr (is_bounded<S>()) {
      ObjectPool<int, NativePool<S>> pool(0), loud(0, {.when_full = WhenFull::kThrow});
      EXPECT_EQ(pool.make(1), nullptr) << S::kName;
      EXPECT_EQ(pool.capacity(), 0u) << S::kName;
      EXPECT_THROW((void)loud.make(1), std::bad_alloc) << S::kName;
    }
  });
  auto growing = ObjectPool<int>::growing(0);
  EXPECT_EQ(growing.make(1), nullptr);
  EXPECT_EQ(growing.peak_slots(), 0u);
}

// A thread that is about to end has no array any more.
TEST(BestPool, ForeignAddressReleasedInALastDestructor_IsCaughtAtOnce) {
  if (kChecked) GTEST_SKIP() << "a checked build catches it at once (conformance)";
  if (base::kAddressSanitizer) GTEST_SKIP() << "AddressSanitizer takes addresses of another pool for released twice";
  const auto release_foreign = [] {
    static NativePool<Best> pool({.slots = 1000, .slot_bytes = 48});
    static pthread_key_t key;
    static std::byte foreign[48];
    static int round = 0;
    pthread_key_create(&key, [](void* slot) {
      // Keys that are set anew get another round of destructors, after all others.
      if (++round < 2)
        pthread_setspecific(key, slot);
      else
        pool.release(foreign);
    });
    std::thread([] { pthread_setspecific(key, pool.acquire()); }).join();
  };
  EXPECT_DEATH(release_foreign(), "not from this allocator");
}

TEST(BestPool, SlotReleasedTwiceAndManyTimesOver_IsCaughtWhenItGoesBack) {
  if (kChecked) GTEST_SKIP() << "a checked build catches it at once (conformance)";
  PoolShape shape;
  shape.slots = 10'000;
  shape.slot_bytes = 16;
  EXPECT_DEATH(
      {
        NativePool<Best> pool(shape);
        void* const slot = pool.acquire();
        for (int i = 0; i < 1000; ++i) pool.release(slot);
      },
      "double free");
}

struct Named {
  int name = 1;
};
struct Shape {
  explicit Shape(double size) : size(size) {}
  Shape(const Shape&) = delete;
  Shape& operator=(const Shape&) = delete;
  ~Shape() { ++ended; }
  double size;
  static inline int ended = 0;
};
struct Circle : Named, Shape {  // so that the base does not lie at the object's address
  explicit Circle(double size) : Shape(size) {}
  ~Circle() { ++circles_ended; }
  static inline int circles_ended = 0;
};

TEST(ObjectPool, HandleAsThatOfABase_EndsTheWholeObject) {
  ObjectPool<Circle> pool(1);
  Circle::circles_ended = Shape::ended = 0;
  {
    PoolPtr<Shape> shape = pool.make(2.5);
    ASSERT_NE(shape, nullptr);
    EXPECT_EQ(shape->size, 2.5);
    EXPECT_NE(static_cast<void*>(shape.get()), static_cast<Circle*>(shape.get()));
    std::vector<PoolPtr<Shape>> shapes;
    shapes.push_back(std::move(shape));
  }
  EXPECT_EQ(Circle::circles_ended, 1);
  EXPECT_EQ(Shape::ended, 1);
  EXPECT_NE(pool.make(1.0), nullptr) << "the slot is back";
  const PoolPtr<Shape> none;
  EXPECT_EQ(none, nullptr);
}

TEST(ObjectPool, OfArrays_ElementThrows_TheOthersEndAndTheSlotIsBack) {
  struct Part {
    Part() {
      if (Counted::alive == 3) throw std::runtime_error("enough");
      ++Counted::alive;
    }
    ~Part() { --Counted::alive; }
  };
  ObjectPool<Part[5]> pool(1);
  for (int round = 0; round < 2; ++round) {
    EXPECT_THROW((void)pool.make(), std::runtime_error) << round << ": the only slot is back each time";
    EXPECT_EQ(Counted::alive, 0);
  }
}

TEST(MovablePool, Moved_HandlesStayValid) {
  std::vector<MovablePool<Counted>> pools;
  std::vector<MovablePool<Counted>::Handle> handles;
  for (int i = 0; i < 20; ++i) {
    pools.push_back(MovablePool<Counted>::growing(1'000));
    handles.push_back(pools.back().make(i));
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(handles[static_cast<std::size_t>(i)]->value, i);
  EXPECT_EQ(pools.front()->capacity(), 1'000U);
  handles.clear();
  EXPECT_EQ(Counted::alive, 0);
}

}  // namespace
}  // namespace freehold::pool
