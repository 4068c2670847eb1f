// SPDX-License-Identifier: MIT
// Freed memory is found again when the next size comes: peak of what is resident, in MiB.
// Ceilings: a twentieth above the better of jemalloc (survivors 194, sawtooth 325) and mimalloc (306, 227). glibc, which
// merges and splits every block: 123 and 85.
#include "tests/memory_return/memory_return.hpp"

namespace freehold::test {
namespace {

TEST(Peak, OneSurvivorPer64KibOver63Sizes_AtMostTheBestOfJemallocAndMimalloc) {
  EXPECT_LE(figure_of(run_and_print({"peak_one_survivor_per_64_kib"}), "peak_mib"), 204);
}
TEST(Peak, SawtoothOfSizes_AtMostTheBestOfJemallocAndMimalloc) {
  EXPECT_LE(figure_of(run_and_print({"peak_sawtooth_of_sizes"}), "peak_mib"), 238);
}

// glibc: 66,000 faults, 160 MiB.
TEST(Peak, LargeBlocksReplaced_PagesThatAreThereServeFirst) {
  const Outcome outcome = run_and_print({"peak_large_blocks_replaced"});
  EXPECT_LE(figure_of(outcome, "faults"), 130'000);
  EXPECT_LE(figure_of(outcome, "peak_mib"), 195);
}

// glibc: 5 MiB. Where all blocks are cleared: 44.
TEST(Peak, ZeroedBlocks_PagesThatNobodyWroteAreNotTouched) {
  EXPECT_LE(figure_of(run_and_print({"peak_zeroed_blocks", "8", "1"}), "peak_mib"), 8);
}
// 733 pages in two mappings, each read and then written: two faults. glibc: 3,060. Where all are given back: 22,000.
TEST(Peak, ZeroedBlockWrittenWhole_KeepsItsPages) {
  EXPECT_LE(figure_of(run_and_print({"peak_zeroed_blocks", "1", "100"}), "faults"), 4'000);
}

class UnderHugePages : public ::testing::TestWithParam<const char*> {};
TEST_P(UnderHugePages, BlocksOf34000Bytes_HoldAnEighthMore) {
  Command command = case_of({"peak_blocks_of_34000_bytes"});
  command.environment.emplace_back("FREEHOLD_HUGE_PAGES", GetParam());
  const Outcome outcome = run_and_print(command);
  EXPECT_LE(figure_of(outcome, "resident_mib"), 1.125 * figure_of(outcome, "requested_mib") + 8);
}
INSTANTIATE_TEST_SUITE_P(Peak, UnderHugePages, ::testing::Values("auto", "on"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace freehold::test
