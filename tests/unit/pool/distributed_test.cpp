// SPDX-License-Identifier: MIT
// Distributed pools: where slots come from and go back to, what happens when a shard is empty, and the spreads.
#include "freehold/strategies/distributed.hpp"

#include <new>

#include "freehold/strategies/array_of_pools.hpp"
#include "freehold/strategies/cpu_stacks.hpp"
#include "freehold/strategies/locked_flags.hpp"
#include "freehold/strategies/roaming_stacks.hpp"
#include "tests/support/strategies.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/hooked_atomics.hpp"

namespace freehold::test {
namespace {

using sync::NativeAtomics;

// A spread that the test sets.
struct Chosen {
  using Atomics = NativeAtomics;
  static inline unsigned choice = 0;
  [[nodiscard]] static unsigned shard(unsigned shards) noexcept { return choice % shards; }
};

using Count = sync::CountContention<NativeAtomics>;
template <class WhenEmpty>
using Pool = pool::Distributed<pool::LockedFlags::Pool<NativeAtomics, Count>, Chosen, WhenEmpty, Count>;

std::vector<void*> take(auto& pool, unsigned shard, std::size_t n) {
  Chosen::choice = shard;
  std::vector<void*> slots;
  for (std::size_t i = 0; i < n; ++i)
    if (void* const slot = pool.acquire(); slot != nullptr) slots.push_back(slot);
  return slots;
}

TEST(Distributed, ReleasedElsewhere_GoesHome) {
  Pool<pool::Fail> pool({.slots = 30, .slot_bytes = 40, .alignment = 8, .shards = 3});
  std::set<void*> of[3];
  for (unsigned shard = 0; shard < 3; ++shard) {
    const std::vector<void*> slots = take(pool, shard, 20);
    EXPECT_EQ(slots.size(), 10u) << shard;  // its own, and no more
    of[shard].insert(slots.begin(), slots.end());
  }
  for (int round = 0; round < 2; ++round) {
    for (unsigned shard = 0; shard < 3; ++shard) {
      Chosen::choice = shard + 1;  // by whoever is in another shard
      for (void* slot : of[shard]) pool.release(slot);
    }
    for (unsigned shard = 0; shard < 3; ++shard) {
      const std::vector<void*> slots = take(pool, shard, 20);
      EXPECT_EQ(std::set<void*>(slots.begin(), slots.end()), of[shard]);
    }
  }
  for (const auto& slots : of)
    for (void* slot : slots) pool.release(slot);
}

TEST(Distributed, ShardEmpty_NextInTurnHelps) {
  Pool<pool::TakeFromNeighbour> pool({.slots = 9, .slot_bytes = 16, .shards = 3});
  const auto shard_of = [&, base = take(pool, 0, 1).front()](void* slot) {
    return (static_cast<char*>(slot) - static_cast<char*>(base)) / 64;  // three slots of 16 bytes, 64 bytes apart
  };
  EXPECT_EQ(take(pool, 0, 2).size(), 2u);
  std::vector<void*> more = take(pool, 0, 1);
  EXPECT_EQ(shard_of(more.front()), 1);
  more = take(pool, 2, 4);
  EXPECT_EQ(std::vector({shard_of(more[0]), shard_of(more[1]), shard_of(more[2]), shard_of(more[3])}),
            (std::vector<std::ptrdiff_t>{2, 2, 2, 1}));
  pool.release(more[3]);
  EXPECT_EQ(take(pool, 0, 2).size(), 2u);
  EXPECT_EQ(take(pool, 0, 1).size(), 0u);
}

// A shard of which the third cannot be made.
using Easygoing = pool::NativePool<pool::LockedFlags>;
struct Fussy : Easygoing {
  explicit Fussy(const pool::PoolShape& shape) : Easygoing(shape) {
    if (made == 2) throw std::bad_alloc();
    ++made;
  }
  ~Fussy() { ++ended; }
  static inline int made = 0, ended = 0;
};
TEST(Distributed, ShardCannotBeMade_ThoseThatWereMadeEnd) {
  const auto make = [] { const pool::Distributed<Fussy, Chosen> pool({.slots = 9, .slot_bytes = 16, .shards = 3}); };
  EXPECT_THROW(make(), std::bad_alloc);
  EXPECT_EQ(Fussy::made, 2);
  EXPECT_EQ(Fussy::ended, 2);
}

TEST(RoamingStacks, ReleasedElsewhere_IsThere) {
  pool::RoamingStacksPool<Chosen, sync::IgnoreContention, pool::DistributedStackOrders{}> pool(
      {.slots = 4, .slot_bytes = 16, .shards = 2});
  const std::vector<void*> slots = take(pool, 0, 4);
  ASSERT_EQ(slots.size(), 4u);
  Chosen::choice = 1;
  pool.release(slots[0]);
  Chosen::choice = 0;
  pool.release(slots[3]);
  EXPECT_EQ(take(pool, 0, 1).front(), slots[3]);
  EXPECT_EQ(take(pool, 0, 1).front(), slots[0]);  // the neighbour's
  EXPECT_EQ(take(pool, 0, 1).size(), 0u);
}

struct ChosenAndHooked : Chosen {
  using Atomics = HookedAtomics;
};
// A slot comes back to a stack that the first sweep has passed: the sweep that repeats it looks into every stack.
TEST(RoamingStacks, ReleasedBehindTheSweep_IsFoundInEveryStack) {
  for (unsigned there = 0; there < 3; ++there) {
    pool::RoamingStacksPool<ChosenAndHooked, sync::IgnoreContention, pool::DistributedStackOrders{}> pool(
        {.slots = 3, .slot_bytes = 16, .shards = 3});
    const std::vector<void*> slots = take(pool, 0, 3);
    ASSERT_EQ(slots.size(), 3u);
    HookedAtomics::hook =
        [&](const void*) {  // nothing is changed while all stacks are empty, until the caller says that it searches
          HookedAtomics::hook = nullptr;
          Chosen::choice = there;
          pool.release(slots[1]);
        };
    const std::vector<void*> found = take(pool, 0, 1);
    HookedAtomics::hook = nullptr;
    EXPECT_EQ(found, std::vector{slots[1]}) << there;
  }
}

// ---- the article's array of pools

struct Buffer {
  int contents = 7;
};
template <class Layout>
class ArrayOfPools : public testing::Test {};
using Layouts = testing::Types<pool::Padded, pool::Packed>;
TYPED_TEST_SUITE(ArrayOfPools, Layouts);

TYPED_TEST(ArrayOfPools, PoppedByIndex_TheThreadsOwnAndNullWhenItIsEmpty) {
  pool::ArrayOfPools<Buffer, 3, 32, TypeParam> array;
  for (std::size_t turn = 0; turn < 64; ++turn) EXPECT_EQ(array.get_pool_index(), turn % 32);
  std::set<Buffer*> all;
  for (std::size_t index = 0; index < 32; ++index) {
    for (int i = 0; i < 3; ++i) all.insert(array.pop(index));
    EXPECT_EQ(array.pop(index), nullptr) << "the others have some";
  }
  EXPECT_EQ(all.size(), 96u);
  EXPECT_EQ(all.count(nullptr), 0u);
  for (Buffer* entry : all) EXPECT_EQ(std::exchange(entry->contents, 8), 7);
  Buffer* const moved = *all.begin();
  array.push(moved, 31);  // to the thread's own, wherever it came from
  EXPECT_EQ(array.pop(0), nullptr);
  EXPECT_EQ(array.pop(31), moved);
  EXPECT_EQ(moved->contents, 8) << "entries live on";
}
TYPED_TEST(ArrayOfPools, PoppedByCpu_GoesHome) {
  const OnOneCpu here;
  pool::ArrayOfPools<Buffer, 3, 2, TypeParam> array;
  Buffer* const entry = array.pop();
  ASSERT_NE(entry, nullptr);
  while (array.pop(0) != nullptr || array.pop(1) != nullptr) {
  }
  array.push(entry);
  EXPECT_EQ(array.pop(), entry);
}
TEST(ArrayOfPoolsLayout, Padded_EntriesOnLinesOfTheirOwn) {
  pool::ArrayOfPools<Buffer, 2, 1> padded;
  pool::ArrayOfPools<Buffer, 2, 1, pool::Packed> packed;
  EXPECT_EQ(std::abs(padded.pop(0) - padded.pop(0)) * sizeof(Buffer), 64u);
  EXPECT_EQ(std::abs(packed.pop(0) - packed.pop(0)), 1);
}

// ---- spreads

struct NumberedThreads : NativeAtomics {
  static inline std::uint32_t number = 0, id = 0;
  static inline unsigned cpu = 0;
  static std::uint32_t thread_number() noexcept { return number; }
  static std::uint32_t thread_id() noexcept { return id; }
  static unsigned cpu_id() noexcept { return cpu; }
};

// Ids of threads started one after the other, as a rule consecutive, meet no shard much more often than the others.
TEST(Spread, ByHash_ConsecutiveIdsEvenly) {
  for (const unsigned shards : {1u, 2u, 3u, 8u, 16u, 17u}) {
    std::map<unsigned, int> met;
    for (std::uint32_t id = 4711; id < 4711 + 32 * shards; ++id) {
      NumberedThreads::id = id;
      const unsigned shard = pool::ByHash<NumberedThreads>::shard(shards);
      ASSERT_LT(shard, shards);
      ++met[shard];
    }
    EXPECT_EQ(met.size(), shards);
    for (const auto& [shard, times] : met) EXPECT_NEAR(times, 32, 8) << shard << " of " << shards;
  }
}

// ---- per-CPU stacks on a machine without sequences

TEST(CpuStacks, NoSequences_TaggedStacksFindTheLast) {
  static_assert(!pool::CpuSequences<NumberedThreads>::available());
  pool::CpuStacks::Pool<NumberedThreads> pool({.slots = 10, .slot_bytes = 8, .shards = 4});
  std::set<void*> slots;
  for (unsigned i = 0; i < 10; ++i) {
    NumberedThreads::cpu = i;
    slots.insert(pool.acquire());
  }
  EXPECT_EQ(slots.size(), 10u);
  EXPECT_EQ(slots.count(nullptr), 0u);
  EXPECT_EQ(pool.acquire(), nullptr);
  pool.release(*slots.begin());
  NumberedThreads::cpu = 2;
  EXPECT_EQ(pool.acquire(), *slots.begin());
  for (void* slot : slots) pool.release(slot);
}

}  // namespace
}  // namespace freehold::test
