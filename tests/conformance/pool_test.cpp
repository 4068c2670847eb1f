// SPDX-License-Identifier: MIT
// The promises of every pool of the registry, whatever its strategy. A new strategy is tested because it is registered.
#include <new>

#include "freehold/base/check.hpp"
#include "freehold/os/cpu.hpp"
#include "tests/support/c_api.hpp"
#include "tests/support/emulated.hpp"
#include "tests/support/heap_errors.hpp"
#include "tests/support/proc.hpp"
#include "tests/support/strategies.hpp"
#include "tests/support/test.hpp"

namespace freehold::test {
namespace {

using pool::CountedPool;
using pool::NativePool;
using pool::PoolShape;

// Slots from 1 to 5000 bytes, alignments to a page, capacities around the words of a bitmap and levels of a tree.
const std::vector<PoolShape>& shapes() {
  static const std::vector<PoolShape> all = {
      {.slots = 1, .slot_bytes = 1, .alignment = 1},      {.slots = 1, .slot_bytes = 5000, .alignment = 4096},
      {.slots = 2, .slot_bytes = 12, .alignment = 4},     {.slots = 9, .slot_bytes = 100, .alignment = 4096},
      {.slots = 17, .slot_bytes = 5000, .alignment = 16}, {.slots = 63, .slot_bytes = 8, .alignment = 8},
      {.slots = 64, .slot_bytes = 16, .alignment = 16},   {.slots = 65, .slot_bytes = 1, .alignment = 1},
      {.slots = 127, .slot_bytes = 3, .alignment = 1},    {.slots = 1000, .slot_bytes = 12, .alignment = 4},
      {.slots = 4096, .slot_bytes = 64, .alignment = 64}, {.slots = 4097, .slot_bytes = 8, .alignment = 8},
      {.slots = 5000, .slot_bytes = 24, .alignment = 8},  {.slots = 300, .slot_bytes = 33, .alignment = 32},
  };
  return all;
}

void shuffle(std::vector<void*>& slots) { std::shuffle(slots.begin(), slots.end(), std::mt19937(42)); }

template <class P>
void release_all(P& pool, const std::vector<void*>& slots) {
  for (void* slot : slots) pool.release(slot);
}

template <class S>
class Pools : public testing::Test {
 protected:
  OnOneCpu one_cpu_;
};
TYPED_TEST_SUITE(Pools, StrategyTypes, StrategyName);

TYPED_TEST(Pools, Fresh_CapacityDistinctAlignedSlotsThenNull) {
  for (const PoolShape& shape : shapes()) {
    SCOPED_TRACE(testing::Message() << shape.slots << " slots of " << shape.slot_bytes << " at " << shape.alignment);
    NativePool<TypeParam> pool(shape);
    std::vector<void*> slots = acquire_all(pool, shape.slots);
    ASSERT_EQ(slots.size(), shape.slots);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(slots[i]) % shape.alignment, 0u);
      std::memset(slots[i], static_cast<int>(i), shape.slot_bytes);
    }
    for (std::size_t i = 0; i < slots.size(); ++i) {  // each slot holds what was written to it
      const auto* bytes = static_cast<const unsigned char*>(slots[i]);
      ASSERT_EQ(bytes[0], static_cast<unsigned char>(i));
      ASSERT_EQ(bytes[shape.slot_bytes - 1], static_cast<unsigned char>(i));
    }
    if (pool::is_bounded<TypeParam>()) {
      EXPECT_EQ(pool.capacity(), shape.slots);
      EXPECT_EQ(pool.acquire(), nullptr);
      EXPECT_EQ(pool.acquire(), nullptr);
    } else {
      EXPECT_EQ(pool.capacity(), pool::kNoLimit);
    }
    release_all(pool, slots);
  }
}

TYPED_TEST(Pools, MoreThanThereCanBe_BadAlloc) {
  if constexpr (!pool::is_bounded<TypeParam>()) GTEST_SKIP() << "takes nothing at first";
  constexpr std::size_t kMost = ~std::size_t{0};
  EXPECT_THROW(NativePool<TypeParam>({.slots = kMost / 8, .slot_bytes = 64}), std::bad_alloc);
  EXPECT_THROW(NativePool<TypeParam>({.slots = 3, .slot_bytes = kMost / 2 - 64}), std::bad_alloc);
}

TYPED_TEST(Pools, ReleasedInAnyOrder_EverythingComesBack) {
  if constexpr (!pool::is_bounded<TypeParam>()) GTEST_SKIP() << "without bound";
  for (const PoolShape& shape : shapes()) {
    NativePool<TypeParam> pool(shape);
    std::vector<void*> slots = acquire_all(pool, shape.slots);
    const std::set<void*> first(slots.begin(), slots.end());
    for (int round = 0; round < 3; ++round) {
      if (round == 1) std::reverse(slots.begin(), slots.end());
      if (round == 2) shuffle(slots);
      release_all(pool, slots);
      slots = acquire_all(pool, shape.slots + 1);
      EXPECT_EQ(std::set<void*>(slots.begin(), slots.end()), first) << shape.slots;
      EXPECT_EQ(slots.size(), first.size());
    }
    release_all(pool, slots);
  }
}

TYPED_TEST(Pools, FullButForOne_ThatIsFoundWhereverItIs) {
  if constexpr (!pool::is_bounded<TypeParam>()) GTEST_SKIP() << "without bound";
  for (const std::size_t n : {1u, 2u, 65u, 130u, 4200u}) {
    NativePool<TypeParam> pool({.slots = n, .slot_bytes = 16});
    const std::vector<void*> slots = acquire_all(pool, n);
    ASSERT_EQ(slots.size(), n);
    for (std::size_t i = 0; i < n; i += n > 1000 ? 61 : 1) {
      pool.release(slots[i]);
      ASSERT_EQ(pool.acquire(), slots[i]) << i << " of " << n;
      ASSERT_EQ(pool.acquire(), nullptr);
    }
    release_all(pool, slots);
  }
}

// A slot that another living thread released last is found, however it keeps it.
TYPED_TEST(Pools, AnotherThreadStillLives_TheLastSlotIsFound) {
  if constexpr (!TypeParam::kFindsLast || !pool::is_bounded<TypeParam>()) GTEST_SKIP() << "does not promise it";
  const PoolShape shape{.slots = 200, .slot_bytes = 16};
  NativePool<TypeParam> pool(shape);
  std::atomic<int> step{0};
  std::thread other([&] {
    release_all(pool, acquire_all(pool, shape.slots));
    step = 1;
    step.notify_all();
    step.wait(1);
  });
  step.wait(0);
  const std::vector<void*> slots = acquire_all(pool, shape.slots);
  EXPECT_EQ(slots.size(), shape.slots);
  step = 2;
  step.notify_all();
  other.join();
  release_all(pool, slots);
}

// ---- contention

TYPED_TEST(Pools, OneThread_OperationsAreCountedAndNoConflicts) {
  CountedPool<TypeParam> pool({.slots = 100, .slot_bytes = 16});
  std::uint64_t calls = 0;
  for (int round = 0; round < 3; ++round) {
    const std::vector<void*> slots = acquire_all(pool, 100);
    calls += slots.size();
    if (pool::is_bounded<TypeParam>()) {
      EXPECT_EQ(pool.acquire(), nullptr);
      ++calls;
    }
    release_all(pool, slots);
    calls += slots.size();
  }
  const sync::Contention counted = pool.contention();
  EXPECT_EQ(counted.operations, calls);
  EXPECT_EQ(counted.retries, 0u);
  EXPECT_EQ(counted.waits, 0u);
  EXPECT_EQ(counted.share(), 0.0);
  EXPECT_EQ(NativePool<TypeParam>({.slots = 1, .slot_bytes = 1}).contention().operations, 0u);
}

// Conflicts need two threads at one instant: tests/model/contention_model.cpp.

// ---- bookkeeping

TYPED_TEST(Pools, ManySlots_NoMoreBookkeepingThanPromised) {
#if defined(FREEHOLD_TEST_SANITIZED)
  GTEST_SKIP() << "a sanitizer maps memory, too";
#else
  FREEHOLD_SKIP_IF_EMULATED("/proc/self/statm is the emulator's");
  if constexpr (requires { TypeParam::kBookkeepingBytes; }) {
    constexpr std::size_t kSlots = std::size_t{1} << 21, kBytes = 16;
    // A pool needs this apart from its slots: lines for threads, an area for each CPU, pages begun.
    constexpr std::size_t kConstant = 128 * 1024;
    const std::size_t areas = std::size_t{os::possible_cpus()} * 64 * 1024;
    const std::size_t before = own_memory().mapped;
    NativePool<TypeParam> pool({.slots = kSlots, .slot_bytes = kBytes, .shards = 2});
    const std::size_t used = own_memory().mapped - before - kSlots * kBytes - (pool::kChecked ? kSlots / 8 : 0);
    EXPECT_LE(static_cast<double>(used), TypeParam::kBookkeepingBytes * kSlots + kConstant + static_cast<double>(areas));
  } else {
    GTEST_SKIP() << "promises nothing";
  }
#endif
}

// ---- misuse

template <class S>
class MisusedPools : public testing::Test {
 protected:
  void SetUp() override {
    if (!pool::kChecked) GTEST_SKIP() << "only a checked build promises to see it";
    if (!pool::is_bounded<S>()) GTEST_SKIP() << "the system's malloc is not ours to check";
  }
  // One error was seen since the last time, and the pool still works.
  void expect_seen(NativePool<S>& pool, base::HeapError error, const void* at, const std::vector<void*>& held) {
    HeapErrors::expect(error, at);
    const std::vector<void*> rest = acquire_all(pool, kSlots);
    std::set<void*> all(rest.begin(), rest.end());
    all.insert(held.begin(), held.end());
    EXPECT_EQ(all.size(), rest.size() + held.size());
    EXPECT_EQ(all.size(), kSlots);
    release_all(pool, rest);
    HeapErrors::expect_none();
  }

  static constexpr std::size_t kSlots = 100;
  OnOneCpu one_cpu_;
  HeapErrors errors_;
};
TYPED_TEST_SUITE(MisusedPools, StrategyTypes, StrategyName);

TYPED_TEST(MisusedPools, SecondRelease_DoubleFree) {
  NativePool<TypeParam> pool({.slots = this->kSlots, .slot_bytes = 24});
  void* const kept = pool.acquire();
  void* const slot = pool.acquire();
  pool.release(opaque(slot));
  pool.release(opaque(slot));
  this->expect_seen(pool, base::HeapError::kDoubleFree, slot, {kept});
}

TYPED_TEST(MisusedPools, SecondReleaseByAnotherThreadAmongMany_DoubleFree) {
  NativePool<TypeParam> pool({.slots = this->kSlots, .slot_bytes = 24});
  const std::vector<void*> slots = acquire_all(pool, this->kSlots);
  release_all(pool, slots);
  std::thread([&] { pool.release(opaque(slots[70])); }).join();
  this->expect_seen(pool, base::HeapError::kDoubleFree, slots[70], {});
}

TYPED_TEST(MisusedPools, AnothersSlotAndTheStack_ForeignPointer) {
  NativePool<TypeParam> pool({.slots = this->kSlots, .slot_bytes = 24});
  NativePool<TypeParam> another({.slots = this->kSlots, .slot_bytes = 24});
  void* const anothers = another.acquire();
  pool.release(opaque(anothers));
  this->expect_seen(pool, base::HeapError::kForeignPointer, anothers, {});
  int local = 0;
  pool.release(opaque(&local));
  this->expect_seen(pool, base::HeapError::kForeignPointer, &local, {});
  another.release(opaque(anothers));
  HeapErrors::expect_none();
}

TYPED_TEST(MisusedPools, MiddleOfASlot_InteriorPointer) {
  NativePool<TypeParam> pool({.slots = this->kSlots, .slot_bytes = 24});
  char* const slot = opaque(static_cast<char*>(pool.acquire()));
  pool.release(opaque(slot + 8));
  this->expect_seen(pool, base::HeapError::kInteriorPointer, slot + 8, {slot});
  pool.release(slot);
  HeapErrors::expect_none();
}

// ---- what AddressSanitizer sees

template <class S>
class WatchedPools : public testing::Test {
 protected:
  void SetUp() override {
    if (!base::kAddressSanitizer) GTEST_SKIP() << "no tool watches";
  }
};
TYPED_TEST_SUITE(WatchedPools, StrategyTypes, StrategyName);

TYPED_TEST(WatchedPools, ReadAfterRelease_Reported) {
  NativePool<TypeParam> pool({.slots = 10, .slot_bytes = 24});
  auto* const slot = static_cast<volatile char*>(pool.acquire());
  slot[23] = 1;
  pool.release(opaque(const_cast<char*>(slot)));
  EXPECT_DEATH(std::exit(slot[23]), "AddressSanitizer: (use-after-poison|heap-use-after-free)");
}

}  // namespace
}  // namespace freehold::test
