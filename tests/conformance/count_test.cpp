// SPDX-License-Identifier: MIT
// freehold/count.hpp; tests/linking/count.c has the C functions in each of malloc's modes.
#include "freehold/count.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/c_api.hpp"

namespace freehold {
namespace {

int* allocated() {
  return test::opaque(static_cast<int* (*)()>([] { return new int(7); }))();
}

TEST(AllocationCount, OperatorNewAndContainers_AreCounted) {
  EXPECT_EQ(count_allocations([] {}).allocations, 0U);
  const AllocationCounts counts = count_allocations([] {
    delete allocated();
    std::vector<char> bytes(1 << 20);
    bytes.resize(2 << 20);
  });
  EXPECT_EQ(counts.allocations, 3U);
  EXPECT_EQ(counts.frees, 3U);
  EXPECT_EQ(counts.allocated_bytes, counts.freed_bytes);
  EXPECT_GE(counts.peak_bytes, std::uint64_t{3} << 20);
}

TEST(AllocationCount, AnException_EndsTheCount) {
  EXPECT_THROW(count_allocations([] { throw std::runtime_error("a text that is too long to be without allocated memory"); }),
               std::runtime_error);
  AllocationCounts counts{};
  EXPECT_EQ(freehold_count_end(&counts, sizeof counts), -1);
}

TEST(AllocationCount, AnotherThread_IsNotCounted) {
  AllocationCount outer;
  std::thread other([] { delete allocated(); });
  const std::uint64_t before = outer.end().allocations;
  other.join();
  EXPECT_LE(before, 3U);  // std::thread's own state, and the system's
  EXPECT_EQ(count_allocations([] { delete allocated(); }).allocations, 1U);
}

TEST(NoMalloc, Nothing_IsOk) {
  std::unique_ptr<int> older(allocated());
  NoMalloc none;
  older.reset();
  EXPECT_TRUE(none.ok());
}

TEST(NoMalloc, Counted_IsNotOk) {
  NoMalloc none(FREEHOLD_COUNT);
  delete allocated();
  EXPECT_FALSE(none.ok());
}

TEST(NoMallocDeathTest, AnAllocation_EndsTheProcessWithItsStack) {
  const auto breaks_the_rule = [] {
    const NoMalloc none;
    delete allocated();
  };
  EXPECT_DEATH(breaks_the_rule(), "freehold: an allocation where none is allowed\nfreehold: +.*conformance_count");
}

}  // namespace
}  // namespace freehold
