// SPDX-License-Identifier: MIT
// The page map: which pages are in it, also where there is no memory for a leaf.
#include "freehold/thread_alloc/page_map.hpp"
#include "tests/support/test.hpp"

namespace freehold::thread_alloc {
namespace {

using sync::NativeAtomics;

// One small leaf, counted; and it can have nothing to give.
struct OneLeaf {
  static inline int mapped = 0;
  static inline bool dry = false;
  static inline std::array<std::uint64_t, 64> leaf{};
  static void* map(std::size_t bytes) {
    if (dry || bytes > sizeof leaf || mapped > 0) return nullptr;
    ++mapped;
    return leaf.data();
  }
  static void release(void*, std::size_t) { --mapped; }
};

const void* page(std::uintptr_t number) { return reinterpret_cast<const void*>(number * 4096); }

TEST(PageMap, PagesPutInAndTakenOut_ContainsTellsThem) {
  static PageMap<NativeAtomics> map;
  EXPECT_FALSE(map.contains(nullptr));
  EXPECT_FALSE(map.contains(page(77)));
  const std::array<std::uintptr_t, 6> numbers{1, 63, 64, (1ULL << 21) - 1, 1ULL << 21, (1ULL << 36) - 1};
  for (const auto n : numbers) EXPECT_TRUE(map.insert(page(n)));
  for (const auto n : numbers) {
    EXPECT_TRUE(map.contains(page(n)));
    EXPECT_TRUE(map.contains(static_cast<const char*>(page(n)) + 4095));
    EXPECT_FALSE(map.contains(page(n ^ 8)));
  }
  EXPECT_FALSE(map.contains(page(65)));
  EXPECT_FALSE(map.contains(page(2)));
  map.erase(page(64));
  EXPECT_FALSE(map.contains(page(64)));
  EXPECT_TRUE(map.contains(page(63)));
  EXPECT_FALSE(map.insert(page(1ULL << 36))) << "beyond the address space";
  EXPECT_FALSE(map.contains(page(1ULL << 36)));
  EXPECT_FALSE(map.contains(reinterpret_cast<const void*>(~std::uintptr_t{0})));
}

TEST(PageMap, NoMemoryForALeaf_InsertFailsAndNothingIsIn) {
  PageMap<NativeAtomics, OneLeaf, 30> map;
  OneLeaf::dry = true;
  EXPECT_FALSE(map.insert(page(5)));
  EXPECT_FALSE(map.contains(page(5)));
  OneLeaf::dry = false;
  EXPECT_TRUE(map.insert(page(5)));
  EXPECT_TRUE(map.contains(page(5)));
  EXPECT_TRUE(map.insert(page(6)));
  EXPECT_EQ(OneLeaf::mapped, 1);
}

}  // namespace
}  // namespace freehold::thread_alloc
