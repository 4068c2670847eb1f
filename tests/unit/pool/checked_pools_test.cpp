// SPDX-License-Identifier: MIT
// Pools in checked mode: this program runs with FREEHOLD_CHECK=1. (Each kind of misuse, in a separate process:
// tests/misuse/pool_program.cpp.)
#include "freehold/base/check.hpp"
#include "freehold/check/settings.hpp"
#include "freehold/pool/object_pool.hpp"
#include "freehold/pool/single_thread.hpp"
#include "tests/support/heap_errors.hpp"
#include "tests/support/strategies.hpp"
#include "tests/support/test.hpp"

namespace freehold::pool {
namespace {

using base::HeapError;
using test::HeapErrors;
using Best = NativePool<pool::Best>;

void overwrite(void* at) {
  auto* const byte = static_cast<volatile unsigned char*>(at);
  *byte = static_cast<unsigned char>(*byte ^ 0x40);
}

class CheckedMode : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(check::settings().on) << "the environment must have FREEHOLD_CHECK=1";
    if (base::kAddressSanitizer) GTEST_SKIP() << "AddressSanitizer looks at the slots instead";
  }
  static void expect(HeapError error, const void* at) { HeapErrors::expect(error, at); }

  HeapErrors errors_;
};

// Strategies whose slots are in memory of their own, and that know at once which of them comes back.
template <class S>
class CheckedStrategies : public CheckedMode {};
using Bounded = testing::Types<pool::Best, LockedFlags, LockFreeBits, TaggedStack, CpuStacks, Magazines>;
TYPED_TEST_SUITE(CheckedStrategies, Bounded, test::StrategyName);

TYPED_TEST(CheckedStrategies, AByteBesideASlotIsWritten_SeenAtItsReleaseAndAtThePoolsEnd) {
  char* slot = nullptr;
  {
    NativePool<TypeParam> pool(PoolShape{.slots = 100, .slot_bytes = 48});
    slot = static_cast<char*>(pool.acquire());
    overwrite(slot + 48);
    pool.release(slot);
    this->expect(HeapError::kWriteBehind, slot);
    overwrite(slot + 48);
    overwrite(slot - 1);
    pool.release(slot);
    this->expect(HeapError::kWriteBefore, slot);
    overwrite(slot - 1);
    overwrite(slot + 55);
  }
  this->expect(HeapError::kWriteBehind, slot);
}

TYPED_TEST(CheckedStrategies, WriteToAReleasedSlot_SeenAtItsReuseOrThePoolsEnd) {
  void* slot = nullptr;
  {
    NativePool<TypeParam> pool(PoolShape{.slots = 4, .slot_bytes = 48});
    slot = pool.acquire();
    pool.release(slot);
    overwrite(static_cast<char*>(slot) + 20);
    std::vector<void*> all;
    while (void* const other = pool.acquire()) all.push_back(other);
    for (void* other : all) pool.release(other);
  }
  this->expect(HeapError::kWriteToFreed, slot);
}

// ---- BestPool

class CheckedBestPool : public CheckedMode {};

// Once most of the quarantine is filled the oldest slot leaves it for the next acquire, and not for the strategy below,
// where one slot at a time costs more than all looks at it.
TEST_F(CheckedBestPool, MostSlotsReleased_TheOldestIsHandedOut) {
  Best pool(PoolShape{.slots = 64, .slot_bytes = 48});
  std::vector<void*> slots(56);
  for (void*& slot : slots) slot = pool.acquire();
  for (void* slot : slots) pool.release(slot);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(pool.acquire(), slots[i]) << i;
  void* const other = pool.acquire();
  EXPECT_EQ(std::find(slots.begin(), slots.end(), other), slots.end()) << "three quarters of it stay";
  pool.release(other);
  for (std::size_t i = 0; i < 8; ++i) pool.release(slots[i]);
}

TEST_F(CheckedBestPool, OnDemand_EveryDamagedSlotIsReported) {
  Best pool({.slots = 100, .slot_bytes = 48});
  auto* const live = static_cast<char*>(pool.acquire());
  auto* const freed = static_cast<char*>(pool.acquire());
  pool.release(freed);
  EXPECT_EQ(pool.look_at_slots(), 0U);
  overwrite(live + 50);
  overwrite(freed);
  EXPECT_EQ(pool.look_at_slots(), 2U);
  ASSERT_EQ(HeapErrors::seen.size(), 2U);
  HeapErrors::seen.clear();
  overwrite(live + 50);
  overwrite(freed);
  pool.release(live);
  HeapErrors::expect_none();
}

TEST_F(CheckedBestPool, PoolOfObjectsEndsBeforeOne_IsReported) {
  std::optional<ObjectPool<std::uint64_t>> pool(std::in_place, 10);
  const void* const at = &*pool;
  std::uint64_t* const object = pool->construct(7U);
  pool.reset();
  expect(HeapError::kObjectsLive, at);
  pool.emplace(10);
  pool->destroy(pool->construct(7U));
  pool.reset();
  pool.emplace(0);
  EXPECT_EQ(pool->construct(7U), nullptr);
  pool.reset();
  HeapErrors::expect_none();
  static_cast<void>(object);
}

TEST_F(CheckedMode, SingleThread_CountsItsSlots) {
  SingleThreadPool pool({.slots = 10, .slot_bytes = 48});
  void* const first = pool.acquire();
  void* const second = pool.acquire();
  EXPECT_EQ(pool.in_use(), 2U);
  pool.release(first);
  EXPECT_EQ(pool.in_use(), 1U);
  pool.release(second);
  EXPECT_EQ(pool.in_use(), 0U);
  HeapErrors::expect_none();
}

// Between its header and the slot there is room for the alignment.
TEST_F(CheckedBestPool, AByteBeforeAnAlignedSlotIsWritten_SeenWhereItIs) {
  Best pool({.slots = 4, .slot_bytes = 64, .alignment = 64});
  auto* const slot = static_cast<char*>(pool.acquire());
  overwrite(slot - 1);
  pool.release(slot);
  expect(HeapError::kWriteBefore, slot);
  overwrite(slot - 1);
  pool.release(slot);
  HeapErrors::expect_none();
}

// Its header lies before the slot: with what it says of the slot, or its mark, gone, nothing else of it can be believed.
TEST_F(CheckedBestPool, TheHeaderBeforeASlotIsWritten_Seen) {
  for (const std::ptrdiff_t before : {12, 20, 30}) {
    Best pool({.slots = 4, .slot_bytes = 48});
    auto* const slot = static_cast<char*>(pool.acquire());
    overwrite(slot - before);
    pool.release(slot);
    expect(HeapError::kWriteBefore, slot);
    overwrite(slot - before);
    pool.release(slot);
    HeapErrors::expect_none();
  }
}

TEST_F(CheckedMode, SingleThreadReleasedTwice_SeenAtTheNextReleaseOrTheEnd) {
  void* slot = nullptr;
  {
    SingleThreadPool pool({.slots = 10, .slot_bytes = 48});
    slot = pool.acquire();
    pool.release(slot);
    pool.release(slot);
  }
  expect(HeapError::kDoubleFree, slot);
}

}  // namespace
}  // namespace freehold::pool
