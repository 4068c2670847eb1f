// SPDX-License-Identifier: MIT
// Held memory stays within a stated factor of live memory. Each bound here is a promise of the README or of the guarantees.
#include "tests/stress/stress.hpp"

namespace freehold::test {
namespace {

TEST(Memory, BlocksOfOneSize_CostAtMostAnEighthMore) {
  for (const double bytes : {12, 129, 1025, 3000, 9000, 40'000, 300'000}) {
    const double slot = bytes < 16 ? 16 : bytes;  // 16 is the smallest
    const std::string size = std::to_string(static_cast<int>(bytes));
    // 3 MiB of 64 for the caches and the tables.
    EXPECT_LE(figure_of(scenario({"memory_of_blocks", size}), "overhead_factor"), slot / bytes * 1.125 * 1.05) << bytes;
  }
}

// Mimalloc's users met fourfold growth here.
TEST(Memory, SleepingProducersAndOneFreer_HeldWithin1_3OfLive) {
  const Outcome outcome = expect_passes(scenario({"memory_producers_and_one_freer", "sleep"}));
  EXPECT_LE(figure_of(outcome, "held_mib"), 1.3 * figure_of(outcome, "live_mib"));
}
TEST(Memory, ExitedProducersAndOneFreer_HeldWithin1_3OfLive) {
  const Outcome outcome = expect_passes(scenario({"memory_producers_and_one_freer", "exit"}));
  EXPECT_LE(figure_of(outcome, "held_mib"), 1.3 * figure_of(outcome, "live_mib"));
}
TEST(Memory, StreamToOneFreer_HeldWithin1_3OfLive) {
  const Outcome outcome = expect_passes("memory_stream_to_one_freer");
  EXPECT_LE(figure_of(outcome, "held_mib"), 1.3 * figure_of(outcome, "live_mib"));
}

class ChangeOfSizes : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};
// The budget's share comes on top: 2 MiB, a sixteenth of what is in use, and 64 MiB that may be regretted.
TEST_P(ChangeOfSizes, After99PercentFreed_TotalAtMostGlibcsAndTheBudget) {
  const auto [from, to] = GetParam();
  const double system = figure_of(scenario({"memory_change_of_sizes", from, to}, Malloc::kSystem), "total_mib");
  const double ours = figure_of(scenario({"memory_change_of_sizes", from, to}), "total_mib");
  EXPECT_LE(ours, system + system / 16 + 66);
}
// "0": sizes of 16 to 1024 bytes.
INSTANTIATE_TEST_SUITE_P(Memory, ChangeOfSizes,
                         ::testing::Values(std::pair{"0", "2000"}, std::pair{"512", "768"}, std::pair{"4000", "12000"}),
                         [](const auto& instance) {
                           return std::string("From") + instance.param.first + "To" + instance.param.second;
                         });

class AfterASpike : public ::testing::TestWithParam<const char*> {};
TEST_P(AfterASpike, TrimOrTheDelay_GivesItBack) {
  // The program goes on with small blocks and, now and then, a buffer of 100 KB.
  const Outcome outcome = expect_passes(scenario({"memory_after_a_spike", GetParam(), "100000"}));
  EXPECT_LE(figure_of(outcome, "after_trim_mib"), 10);
  EXPECT_LE(figure_of(outcome, "after_delay_mib"), 30);
}
TEST_P(AfterASpike, WorkThatFitsTheCaches_GivesItBackAfterTheDelay) {
  // The program takes nothing more from the heap and gives nothing back to it.
  EXPECT_LE(figure_of(scenario({"memory_after_a_spike", GetParam(), "0"}), "after_delay_mib"), 100);
}
INSTANTIATE_TEST_SUITE_P(Memory, AfterASpike, ::testing::Values("100", "5000", "2000000"),
                         [](const auto& instance) { return std::string("OfBlocksOf") + instance.param; });

TEST(Memory, GrowingBlock_IsNotCopiedBesideItself) {
  const Outcome outcome = expect_passes("memory_growing_block");
  EXPECT_LE(figure_of(outcome, "peak_mib"), 1.1 * figure_of(outcome, "final_mib"));
}

}  // namespace
}  // namespace freehold::test
