// SPDX-License-Identifier: MIT
// Guarded blocks on real pages: which block a fault between two of them belongs to, and slots that are given up. Each misuse
// of a whole program is tests/misuse/guards_test.cpp's, threads are tests/model/guard_slots_model.cpp's.
#include "freehold/check/guard_slots.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include "freehold/os/pages.hpp"
#include "tests/support/test.hpp"

namespace freehold::check {
namespace {

using base::HeapError;
using Slots = GuardSlots<sync::NativeAtomics, os::Pages>;

const auto kNobody = [](Trace&) {};
const auto kNoDamage = [](const auto& verdict) { ADD_FAILURE() << base::text(verdict.error); };
// Returns whether the program may write there.
bool is_writable(void* address) {
  char byte = 0x11;
  const iovec from{&byte, 1}, to{address, 1};
  return ::process_vm_writev(::getpid(), &from, 1, &to, 1, 0) == 1;
}

struct World {
  explicit World(unsigned count) : states(count), records(count), bytes(Slots::region_bytes(count, kPage)) {
    region = os::Pages::reserve(bytes, kPage);
    slots.init(pages, region, kPage, states.data(), records.data(), count);
  }
  ~World() { os::Pages::release(region, bytes); }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  static inline const std::size_t kPage = os::page_bytes();
  std::vector<Slots::State> states;
  std::vector<Slots::Record> records;
  std::size_t bytes;
  void* region;
  os::Pages pages;
  Slots slots;
};

char* allocate(World& world, std::size_t bytes, bool at_end) {
  return static_cast<char*>(world.slots.allocate(bytes, 16, at_end, kNobody));
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

}  // namespace
}  // namespace freehold::check
