// SPDX-License-Identifier: MIT
// OwnerLockedHeap beyond the suite of both kinds: a class whose last object ends begins anew.
#include "freehold/heap/owner_locked_heap.hpp"
#include "tests/support/inside.hpp"
#include "tests/support/test.hpp"

namespace freehold {
namespace {

constexpr std::size_t kBytes = 48, kObjects = 20'000;

std::vector<std::byte*> allocate(heap::OwnerLockedHeap& heap) {
  std::vector<std::byte*> blocks(kObjects);
  for (auto& block : blocks) block = static_cast<std::byte*>(heap.allocate(kBytes, 8));
  return blocks;
}
void deallocate_at_random(heap::OwnerLockedHeap& heap, std::vector<std::byte*> blocks) {
  std::ranges::shuffle(blocks, std::mt19937(1));
  for (std::byte* const block : blocks) heap.deallocate(block, kBytes, 8);
}
// Blocks that lie right behind the one that was allocated before them, of a thousand.
std::size_t neighbours(const std::vector<std::byte*>& blocks) {
  std::size_t found = 0;
  for (std::size_t i = 1; i < blocks.size(); ++i)
    found += blocks[i] > blocks[i - 1] && blocks[i] < blocks[i - 1] + 2 * kBytes;
  return 1000 * found / blocks.size();
}

TEST(OwnerLockedHeap, LastObjectOfAClassEnds_TheNextLieSideBySide) {
  heap::OwnerLockedHeap heap;
  deallocate_at_random(heap, allocate(heap));
  heap::Inside::check_invariants(heap);
  EXPECT_EQ(heap.stats().live_objects, 0U);
  EXPECT_EQ(heap.stats().used_bytes, 0U);
  const std::size_t held = heap.stats().held_bytes;
  const auto blocks = allocate(heap);
  EXPECT_GT(neighbours(blocks), 980U);
  EXPECT_EQ(heap.stats().held_bytes, held);
  heap::Inside::check_invariants(heap);
}
TEST(OwnerLockedHeap, OneObjectOfTheClassLives_NothingBeginsAnew) {
  heap::OwnerLockedHeap heap;
  void* const kept = heap.allocate(kBytes, 8);
  deallocate_at_random(heap, allocate(heap));
  heap::Inside::check_invariants(heap);
  EXPECT_GT(heap.stats().used_bytes, kBytes * kObjects);
  EXPECT_LT(neighbours(allocate(heap)), 100U);
  heap.deallocate(kept, kBytes, 8);
}
TEST(OwnerLockedHeap, OtherClassesLive_TheyAreLeftAlone) {
  heap::OwnerLockedHeap heap;
  std::vector<unsigned char*> others;
  for (unsigned i = 0; i < 1000; ++i) {
    others.push_back(static_cast<unsigned char*>(heap.allocate(200, 8)));
    std::fill_n(others.back(), 200, static_cast<unsigned char>(i));
  }
  for (unsigned round = 0; round < 3; ++round) deallocate_at_random(heap, allocate(heap));
  heap::Inside::check_invariants(heap);
  for (unsigned i = 0; i < 1000; ++i) EXPECT_EQ(std::count(others[i], others[i] + 200, static_cast<unsigned char>(i)), 200);
}

}  // namespace
}  // namespace freehold
