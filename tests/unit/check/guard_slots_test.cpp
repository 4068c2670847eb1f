// SPDX-License-Identifier: MIT
// Guarded blocks on real pages. The oracle for faults is the system: it is asked whether it can read or write an address,
// and answers what an access would meet. Threads that allocate and free at once are compared by what they wrote.
#include "freehold/check/guard_slots.hpp"

#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "freehold/os/pages.hpp"

namespace freehold::check {
namespace {

using base::HeapError;
using Slots = GuardSlots<sync::NativeAtomics, os::Pages>;

const auto kNobody = [](Trace&) {};
const auto kNoDamage = [](const auto& verdict) { ADD_FAILURE() << base::text(verdict.error); };
auto thread(std::uint32_t number) {
  return [=](Trace& trace) {
    trace.thread = number;
    trace.depth = 2;
    trace.addresses[0] = reinterpret_cast<void*>(std::uintptr_t{number});
    trace.addresses[1] = nullptr;
  };
}

// Whether the program may write there.
bool is_writable(void* address) {
  char byte = 0x11;
  const iovec from{&byte, 1}, to{address, 1};
  return ::process_vm_writev(::getpid(), &from, 1, &to, 1, 0) == 1;
}

template <class Pages>
class WithSlots {
 public:
  using Type = GuardSlots<sync::NativeAtomics, Pages>;

  explicit WithSlots(unsigned count) : states(count), records(count) {
    bytes_ = Type::region_bytes(count, kPage);
    region_ = os::Pages::reserve(bytes_, kPage);
    slots.init(pages, region_, kPage, states.data(), records.data(), count);
  }
  ~WithSlots() { os::Pages::release(region_, bytes_); }
  WithSlots(const WithSlots&) = delete;
  WithSlots& operator=(const WithSlots&) = delete;

  static inline const std::size_t kPage = os::page_bytes();
  std::vector<typename Type::State> states;
  std::vector<typename Type::Record> records;
  Pages pages;
  Type slots;

 private:
  void* region_;
  std::size_t bytes_;
};
using World = WithSlots<os::Pages>;

char* allocate(World& world, std::size_t bytes, bool at_end, std::size_t alignment = 16) {
  return static_cast<char*>(world.slots.allocate(bytes, alignment, at_end, thread(7)));
}

TEST(GuardSlots, AtTheEnd_TheByteBehindItIsRefused) {
  World world(4);
  for (const std::size_t bytes : {std::size_t{16}, std::size_t{4080}, World::kPage}) {
    char* const block = allocate(world, bytes, true);
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(is_writable(block) && is_writable(block + bytes - 1));
    EXPECT_FALSE(is_writable(block + bytes));
    const auto finding = world.slots.find(block + bytes);
    EXPECT_TRUE(finding.is_known);
    EXPECT_EQ(finding.error, HeapError::kAccessBehind);
    EXPECT_EQ(finding.block.start, reinterpret_cast<std::uintptr_t>(block));
  }
}

TEST(GuardSlots, Freed_RefusedAndFoundWithBothTraces) {
  World world(2);
  char* const block = allocate(world, 100, true);
  EXPECT_FALSE(world.slots.free(block, thread(8), kNoDamage).is_bad);
  EXPECT_FALSE(is_writable(block));
  const auto finding = world.slots.find(block + 5);
  ASSERT_TRUE(finding.is_known && finding.block.is_whole);
  EXPECT_EQ(finding.error, HeapError::kUseOfFreed);
  EXPECT_EQ(finding.block.bytes, 100U);
  EXPECT_FALSE(finding.block.is_live);
  EXPECT_EQ(finding.block.allocated.thread, 7U);
  EXPECT_EQ(finding.block.freed.thread, 8U);
  ASSERT_EQ(finding.block.freed.depth, 2U);
  EXPECT_EQ(finding.block.freed.addresses[0], reinterpret_cast<void*>(8));
}

TEST(GuardSlots, BadPointers_EachItsErrorAndNothingHappens) {
  World world(3);
  char* const freed = allocate(world, 40, false);
  EXPECT_FALSE(world.slots.free(freed, kNobody, kNoDamage).is_bad);
  char* const block = allocate(world, 40, false);
  const auto error_of = [&](char* p) {
    const auto verdict = world.slots.free(p, thread(9), kNoDamage);
    EXPECT_TRUE(verdict.is_bad);
    EXPECT_EQ(verdict.address, p);
    return verdict.error;
  };
  EXPECT_EQ(error_of(freed), HeapError::kDoubleFree);
  EXPECT_EQ(error_of(block + 16), HeapError::kInteriorPointer);
  EXPECT_EQ(error_of(block + World::kPage), HeapError::kForeignPointer);      // between slots
  EXPECT_EQ(error_of(block + 2 * World::kPage), HeapError::kForeignPointer);  // a slot without a block
  EXPECT_EQ(world.slots.bytes_of(freed), 0U);
  EXPECT_EQ(world.slots.bytes_of(block + 16), 0U);
  EXPECT_EQ(world.slots.bytes_of(block), 40U);
  EXPECT_FALSE(world.slots.free(block, kNobody, kNoDamage).is_bad);
}

TEST(GuardSlots, BytesAroundABlockWritten_SeenWhenItIsFreed) {
  World world(1);
  struct Case {
    std::ptrdiff_t offset;
    bool at_end;
    HeapError error;
  };
  for (const Case c : {Case{24, true, HeapError::kWriteBehind}, Case{31, true, HeapError::kWriteBehind},
                       Case{24, false, HeapError::kWriteBehind}, Case{4095, false, HeapError::kWriteBehind},
                       Case{-1, true, HeapError::kWriteBefore}, Case{-4064, true, HeapError::kWriteBefore}}) {
    char* const block = allocate(world, 24, c.at_end);
    block[c.offset] = 'x';
    Slots::Verdict seen;
    const auto note = [&](const Slots::Verdict& verdict) {
      seen = verdict;
      EXPECT_TRUE(is_writable(block)) << "a report reads the damage";
    };
    EXPECT_FALSE(world.slots.free(block, kNobody, note).is_bad);
    EXPECT_TRUE(seen.is_bad);
    EXPECT_EQ(seen.error, c.error);
    EXPECT_EQ(seen.address, block + c.offset);
    EXPECT_FALSE(is_writable(block)) << "it is freed all the same";
  }
}

TEST(GuardSlots, PageBetweenTwoBlocks_TheLiveOneThenTheNearerOne) {
  World world(2);
  char* const left = allocate(world, 32, true);
  char* const right = allocate(world, 32, false);
  char* const gap = left + 32;
  EXPECT_EQ(world.slots.find(gap + 10).error, HeapError::kAccessBehind);
  EXPECT_EQ(world.slots.find(right - 10).error, HeapError::kAccessBefore);
  EXPECT_FALSE(world.slots.free(left, kNobody, kNoDamage).is_bad);
  EXPECT_EQ(world.slots.find(gap + 10).error, HeapError::kAccessBefore);
  EXPECT_EQ(world.slots.find(gap + 10).block.start, reinterpret_cast<std::uintptr_t>(right));
  EXPECT_FALSE(world.slots.free(right, kNobody, kNoDamage).is_bad);
  EXPECT_EQ(world.slots.find(gap + 10).error, HeapError::kAccessBehind);
}

TEST(GuardSlots, Forgiven_WritableAndNeverUsedAgain) {
  World world(2);
  char* const block = allocate(world, 16, false);
  EXPECT_FALSE(world.slots.forgive(block)) << "it is in use";
  EXPECT_FALSE(world.slots.free(block, kNobody, kNoDamage).is_bad);
  EXPECT_TRUE(world.slots.forgive(block));
  EXPECT_TRUE(is_writable(block));
  EXPECT_TRUE(world.slots.forgive(block - 1));
  EXPECT_TRUE(is_writable(block - 1));
  EXPECT_NE(allocate(world, 16, false), nullptr);
  EXPECT_EQ(allocate(world, 16, false), nullptr);
}

// Each thread fills its blocks with a byte of its own; another looks at records meanwhile.
TEST(GuardSlots, ManyThreads_NoBlockTwice) {
  World world(6);
  std::atomic<unsigned> wrong{0}, blocks{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (unsigned t = 1; t <= 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 500; ++i) {
        const std::size_t bytes = 16 + random() % 100;
        auto* const block = static_cast<unsigned char*>(world.slots.allocate(bytes, 16, i % 2 == 0, thread(t)));
        if (block == nullptr) continue;
        ++blocks;
        std::memset(block, static_cast<int>(t), bytes);
        for (std::size_t k = 0; k < bytes; ++k) wrong += block[k] != t;
        if (world.slots.free(block, thread(t), kNoDamage).is_bad) ++wrong;
      }
    });
  std::thread looks([&] {
    while (!done) {
      for (const auto& record : world.records) {
        const auto* const page = reinterpret_cast<const void*>(record.start.load(std::memory_order_relaxed));
        if (!world.slots.contains(page)) continue;
        const auto finding = world.slots.find(page);
        if (finding.block.is_whole && !finding.block.is_live)
          wrong += finding.block.allocated.thread != finding.block.freed.thread;
      }
    }
  });
  for (std::thread& thread : threads) thread.join();
  done = true;
  looks.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_GT(blocks, 0U);
}

}  // namespace
}  // namespace freehold::check
