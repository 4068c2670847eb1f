// SPDX-License-Identifier: MIT
// A process may have some 65,530 mappings (vm.max_map_count) and starts no thread without one: ours are a small constant
// plus what lives. Other mallocs
// after 2,000 grown buffers were freed: glibc 58, jemalloc 67, mimalloc 63.
#include <algorithm>
#include <fstream>

#include "tests/memory_return/memory_return.hpp"

namespace freehold::test {
namespace {

constexpr double kConstant = 200;

TEST(Mappings, FortyThousandBuffersGrow_FewStay) {
  const Outcome outcome = run_and_print({"mappings_growing_buffers", "40000", "0x40000", "0x80000", "2"});
  EXPECT_LE(figure_of(outcome, "mappings_live"), kConstant + figure_of(outcome, "buffers"));
  EXPECT_LE(figure_of(outcome, "mappings_trimmed"), kConstant);
  EXPECT_LE(figure_of(outcome, "resident_mib"), 24);
}

// Untouched pages stay untouched: one of each buffer was written, where a copy would have 860 MiB and 10 GiB. On 2026-11-26
// 16 and 238 MiB, glibc 12 and 159. They move with their mapping until half of the mappings that a process may have are
// used. From then on a fault for each of the 64 pages that are read is the price, and none for those that they would go to.
TEST(Mappings, SparseBuffersGrow_UntouchedPagesStayAway) {
  std::uint64_t mappings = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> mappings;
  const auto faults = [&](double buffers, double pages) {
    const double copied = std::max(0.0, buffers - static_cast<double>(mappings / 2));
    return 5 * buffers + copied * (pages + 2);
  };
  const Outcome few = run_and_print({"mappings_growing_buffers", "3000", "300000", "600000", "1"});
  EXPECT_LE(figure_of(few, "live_mib"), 40);
  EXPECT_LE(figure_of(few, "faults_grown"), faults(3000, 74));
  const Outcome many = run_and_print({"mappings_growing_buffers", "40000", "0x40000", "0x80000", "1"});
  EXPECT_LE(figure_of(many, "peak_mib"), 400);
  EXPECT_LE(figure_of(many, "faults_grown"), faults(40'000, 64));
}

TEST(Mappings, TwoThousandBuffersGrow_AtMostOneForEach) {
  const Outcome outcome = run_and_print({"mappings_growing_buffers", "2000", "0x40000", "0x80000", "2"});
  EXPECT_LE(figure_of(outcome, "mappings_live"), kConstant + 2000);
  EXPECT_LE(figure_of(outcome, "mappings_trimmed"), kConstant);
}

TEST(Mappings, SixtyFourBuffersGrowInTurn_AtMostOneForEach) {
  const Outcome outcome = run_and_print({"mappings_64_growing_buffers"});
  EXPECT_LE(figure_of(outcome, "mappings_live"), kConstant + 64);
  EXPECT_LE(figure_of(outcome, "mappings_trimmed"), kConstant);
  EXPECT_LE(figure_of(outcome, "resident_mib"), 24);
}

class AllUsed : public ::testing::TestWithParam<const char*> {};
TEST_P(AllUsed, LargeBlocksComeGrowAndGo_NullOrIntact) {
  const Outcome outcome = run_and_print({"mappings_all_used", GetParam()});
  if (outcome.figures().contains("unlimited")) GTEST_SKIP() << "vm.max_map_count allows more mappings than this test makes";
  EXPECT_GE(figure_of(outcome, "granted"), 1000);
  EXPECT_LE(figure_of(outcome, "mappings_trimmed"), kConstant);
  EXPECT_LE(figure_of(outcome, "resident_mib"), 24);
}
INSTANTIATE_TEST_SUITE_P(Mappings, AllUsed, ::testing::Values("0", "2", "8", "64"),
                         [](const auto& instance) { return std::string("Room") + instance.param; });

}  // namespace
}  // namespace freehold::test
