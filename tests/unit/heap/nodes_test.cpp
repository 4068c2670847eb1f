// SPDX-License-Identifier: MIT
// Heaps on a memory node, on machines that this one need not be.
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "freehold/heap/owner_locked_heap.hpp"
#include "freehold/heap/private_heap.hpp"
#include "freehold/os/nodes.hpp"
#include "freehold/os/pages.hpp"
#include "tests/support/test.hpp"

namespace freehold::heap {
namespace {

// A machine with so many nodes, of which memory remembers the one that it is bound to.
struct Machine {
  static unsigned count() noexcept { return nodes; }
  static bool bind(void* memory, std::size_t bytes, unsigned node) noexcept {
    if (refuses) return false;
    bound[memory] = {bytes, node};
    return true;
  }
  static void unbind(void* memory, std::size_t bytes) noexcept {
    const auto at = bound.find(memory);
    if (at == bound.end()) return;
    EXPECT_EQ(at->second.first, bytes);
    bound.erase(at);
  }
  static inline unsigned nodes = 2;
  static inline bool refuses = false;
  static inline std::map<void*, std::pair<std::size_t, unsigned>> bound;
};
using Slabs = NodeSlabs<EngineSlabs, Machine>;
using Heap = BasicOwnerLockedHeap<sync::NativeAtomics, HeapGeometry, Slabs>;

std::size_t bytes_on(unsigned node) {
  std::size_t bytes = 0;
  for (const auto& [memory, where] : Machine::bound) bytes += where.second == node ? where.first : 0;
  return bytes;
}
// Small blocks of several slabs, and a large one.
void use(Heap& heap) {
  std::vector<void*> blocks;
  for (int i = 0; i < 10'000; ++i) blocks.push_back(heap.allocate(100));
  void* const large = heap.allocate(1 << 20);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(Machine::nodes > 1 && !Machine::refuses, bytes_on(1) >= heap.stats().held_bytes && !Machine::bound.empty());
  heap.deallocate(large);
  for (void* const block : blocks) heap.deallocate(block);
}

TEST(HeapOnNode, EverySlabAndLargeBlockLiesThere_NoneAfterItsEnd) {
  if (base::kAddressSanitizer) GTEST_SKIP() << "heaps take memory from AddressSanitizer";
  Machine::nodes = 2;
  {
    HeapOptions options;
    options.node = 1;
    Heap heap(options);
    use(heap);
    EXPECT_EQ(bytes_on(0), 0U);
    heap.release_all();
    use(heap);
  }
  EXPECT_TRUE(Machine::bound.empty()) << "the engine hands this memory to others";
}

TEST(HeapOnNode, OneNodeOrNoSuchNodeOrNobodyAsked_NothingIsBound) {
  for (const auto& [nodes, node] : {std::pair{1U, 0}, std::pair{1U, 1}, std::pair{2U, 2}, std::pair{2U, -1}}) {
    Machine::nodes = nodes;
    HeapOptions options;
    options.node = node;
    Heap heap(options);
    for (int i = 0; i < 1'000; ++i) ASSERT_NE(heap.allocate(100), nullptr);
    EXPECT_TRUE(Machine::bound.empty());
  }
  Machine::nodes = 2;
}

TEST(HeapOnNode, SystemRefuses_HeapWorks) {
  Machine::refuses = true;
  HeapOptions options;
  options.node = 1;
  Heap heap(options);
  use(heap);
  EXPECT_TRUE(Machine::bound.empty());
  Machine::refuses = false;
}

// The kernel's answer for each page around a range that neither begins nor ends with one.
TEST(HeapOnNode, BoundMemory_WholePagesAndNoneOfTheNeighbours) {
  const std::size_t page = os::page_bytes();
  auto* const memory = static_cast<char*>(std::aligned_alloc(page, 5 * page));
  ASSERT_NE(memory, nullptr);
  std::memset(memory, 1, 5 * page);
  const auto policy_of = [&](std::size_t number) {
    int mode = -1;
    EXPECT_EQ(syscall(SYS_get_mempolicy, &mode, nullptr, 0UL, memory + number * page, MPOL_F_ADDR), 0);
    return mode;
  };
  if (syscall(SYS_get_mempolicy, nullptr, nullptr, 0UL, nullptr, 0UL) != 0 || !os::Nodes::bind(memory + 100, 4 * page, 0)) {
    std::free(memory);
    GTEST_SKIP() << "the kernel binds no memory";
  }
  EXPECT_EQ(policy_of(0), MPOL_DEFAULT);
  for (std::size_t number = 1; number < 4; ++number) EXPECT_EQ(policy_of(number), MPOL_BIND) << number;
  EXPECT_EQ(policy_of(4), MPOL_DEFAULT);
  os::Nodes::unbind(memory + 100, 4 * page);
  for (std::size_t number = 0; number < 5; ++number) EXPECT_EQ(policy_of(number), MPOL_DEFAULT) << number;
  std::free(memory);
}

}  // namespace
}  // namespace freehold::heap
