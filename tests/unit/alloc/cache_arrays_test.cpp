// SPDX-License-Identifier: MIT
// CacheArrays with a registry and nothing else of the engine: no arena, no slots.
#include "freehold/alloc/front/cache_arrays.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/alloc/support.hpp"

namespace freehold::alloc {
namespace {

using A = sync::NativeAtomics;
using Config = NativeConfig;
using Classes = Config::Classes;
using Registry = CacheRegistry<A, Config, test::FakePages>;
using Cache = Registry::Cache;
const SizeClass kSmall = Classes::class_of(16), kLargest = Classes::class_of(Classes::kMaxBytes);

class CacheArraysTest : public ::testing::Test {
 protected:
  CacheArraysTest() { registry_.attach(pages_); }
  void begin(std::size_t budget) {
    arrays_.init(budget);
    for (Cache*& cache : caches_) ASSERT_NE(cache = registry_.add(), nullptr);
  }
  // The invariants of the head.
  [[nodiscard]] bool holds() {
    std::size_t lent = 0;
    for (const Cache* cache : caches_) {
      std::size_t granted = 0;
      for (const SizeClass c : AllClasses<Classes>{}) granted += cache->bins[c].capacity * Classes::slot_bytes(c);
      if (granted != cache->granted || granted > cache->allowance || cache->allowance > Config::kThreadMaxBytes)
        return false;
      lent += cache->allowance - Config::kThreadBytes;
    }
    return lent + arrays_.left() == arrays_.common();
  }

  test::FakePages pages_;
  Budget<A, Config> budget_;
  DueNote<A> due_;
  FreeSpans<A, Config> spans_{budget_, due_};
  ThreadIds<A> ids_;
  Registry registry_{spans_, ids_};
  CacheArrays<A, Config, test::FakePages> arrays_{registry_};
  Cache* caches_[2] = {};
};

TEST_F(CacheArraysTest, Grow_NoBudget_OwnShareOnly) {
  begin(0);
  EXPECT_TRUE(arrays_.grow(*caches_[0], kSmall));
  EXPECT_FALSE(arrays_.grow(*caches_[0], kLargest));
  EXPECT_TRUE(holds());
}

TEST_F(CacheArraysTest, Grow_BudgetIsLent_OtherGetsItAfterShrink) {
  begin(Config::kBudgetStepBytes);
  ASSERT_TRUE(arrays_.grow(*caches_[0], kLargest));
  EXPECT_EQ(arrays_.left(), 0U);
  EXPECT_FALSE(arrays_.grow(*caches_[1], kLargest));
  EXPECT_TRUE(holds());
  arrays_.shrink(*caches_[0], kLargest);
  EXPECT_TRUE(arrays_.grow(*caches_[1], kLargest));
  EXPECT_TRUE(holds());
}

TEST_F(CacheArraysTest, Grow_NoMemoryForTheArray_NothingIsLent) {
  begin(Config::kBudgetStepBytes);
  pages_.fail_from_now_on();
  unsigned c = kLargest.index();
  for (; c != 0 && arrays_.grow(*caches_[0], SizeClass{c}); --c) continue;  // the records' first chunk has room for some
  EXPECT_NE(c, 0U);
  EXPECT_TRUE(holds());
}

TEST_F(CacheArraysTest, Grow_EveryClassOfOneCache_AtMostKThreadMaxBytes) {
  begin(2 * Config::kThreadMaxBytes);
  for (bool some = true; some;) {
    some = false;
    for (const SizeClass c : AllClasses<Classes>{}) some = arrays_.grow(*caches_[0], c) || some;
    ASSERT_TRUE(holds());
  }
  EXPECT_GT(caches_[0]->allowance, Config::kThreadMaxBytes / 2);
}

}  // namespace
}  // namespace freehold::alloc
