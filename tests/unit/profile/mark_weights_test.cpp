// SPDX-License-Identifier: MIT
#include "freehold/profile/mark_weights.hpp"

#include <cmath>

#include "tests/support/test.hpp"

namespace freehold::profile {
namespace {

constexpr std::uint64_t kMean = 4096;

// A loop that takes and frees at one mark, and keeps the block of the last turn.
struct Loop {
  ByteSampler random;
  std::uint64_t samples = 0;
  // The weight of the block that is kept; 0: its mark had ended.
  std::uint32_t turns(unsigned count) {
    std::uint32_t weight = 1;
    for (unsigned i = 0; i < count && weight != 0; ++i) {
      weight = MarkWeights::turn(random, kMean, weight);
      samples += weight != 0 ? 1 : 0;
    }
    return weight;
  }
};

// The mean of 20,000 marks; half of them or more end. Their weights' deviation is some sqrt(turns / kTurns).
TEST(MarkWeights, AnyNumberOfTurns_StandsForAsManyAsBefore) {
  for (const unsigned turns : {1u, 50u, 300u, 2'000u}) {
    constexpr unsigned kMarks = 20'000;
    Loop loop;
    double sum = 0, squares = 0;
    for (unsigned i = 0; i < kMarks; ++i) {
      const double weight = loop.turns(turns);
      sum += weight;
      squares += weight * weight;
    }
    const double mean = sum / kMarks, deviation = std::sqrt((squares / kMarks - mean * mean) / kMarks);
    EXPECT_NEAR(mean, 1, 5 * deviation + 1e-9) << turns;
    EXPECT_LT(deviation, 0.05) << turns;
  }
}
TEST(MarkWeights, LongLoop_CostsTheLogarithmOfItsTurns) {
  constexpr unsigned kMarks = 3'000, kTurns = 200'000;  // few of them would differ too much
  Loop loop;
  for (unsigned i = 0; i < kMarks; ++i) (void)loop.turns(kTurns);
  const double stages = std::log2(double(kTurns) / MarkWeights::kTurns) + 2;
  EXPECT_LT(double(loop.samples) / kMarks, 2 * MarkWeights::kTurns * stages);
}
TEST(MarkWeights, AllBlocksAreAskedFor_AllAreSampled) {
  ByteSampler random;
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(MarkWeights::turn(random, 1, 1), 1u);
}
TEST(MarkWeights, KnownByTheirPlaces_OneAtATime) {
  MarkWeights weights;
  weights.put(3, 10, 4);
  weights.put(3, 11, 2);
  weights.put(4, 10, 8);
  EXPECT_EQ(weights.take(3, 9), 1u);
  EXPECT_EQ(weights.take(4, 10), 8u);
  EXPECT_EQ(weights.take(3, 10), 4u);
  EXPECT_EQ(weights.take(3, 10), 1u) << "it was taken";
  weights.put(3, 11, 1);
  EXPECT_EQ(weights.take(3, 11), 1u) << "another mark lies there now";
}
TEST(MarkWeights, OldestEntriesLeave_TheOthersMoveDown) {
  MarkWeights weights;
  weights.put(3, 10, 4);
  weights.put(3, 64, 2);
  weights.put(5, 10, 16);
  weights.drop_oldest(3, 64);
  EXPECT_EQ(weights.take(3, 0), 2u);
  EXPECT_EQ(weights.take(3, 10), 1u);
  EXPECT_EQ(weights.take(5, 10), 16u);
}
TEST(MarkWeights, EntryRemoved_ThoseAboveMoveDown) {
  MarkWeights weights;
  for (const std::size_t at : {2, 5, 9}) weights.put(3, at, static_cast<std::uint32_t>(2 * at));
  weights.put(4, 9, 4);
  weights.remove(3, 5);
  EXPECT_EQ(weights.take(3, 2), 4u);
  EXPECT_EQ(weights.take(3, 8), 18u);
  EXPECT_EQ(weights.take(4, 9), 4u);
  EXPECT_EQ(weights.take(3, 5), 1u);
}
TEST(MarkWeights, NoRoom_TheLightestIsForgotten) {
  MarkWeights weights;
  for (std::size_t i = 0; i < MarkWeights::kKept; ++i) weights.put(1, i, i == 5 ? 2 : 8);
  weights.put(2, 0, 2);
  EXPECT_EQ(weights.take(2, 0), 1u) << "no lighter one";
  weights.put(2, 0, 4);
  EXPECT_EQ(weights.take(2, 0), 4u);
  EXPECT_EQ(weights.take(1, 5), 1u);
  EXPECT_EQ(weights.take(1, 4), 8u);
}
TEST(MarkWeights, AsADistance_StandsForSoManyTimesTheBlocks) {
  for (const std::uint64_t mean : {std::uint64_t{1}, std::uint64_t{4096}, std::uint64_t{512} << 10})
    for (const std::uint64_t bytes : {16, 400, 4096, 32768})
      for (std::uint32_t weight = 1; weight <= 1024; weight *= 2) {
        const std::uint64_t thinned = thinned_mean(bytes, mean, weight);
        const double ratio = blocks_behind(bytes, thinned) / blocks_behind(bytes, mean);
        EXPECT_NEAR(ratio / weight, 1, 0.03) << mean << " " << bytes << " " << weight;
        EXPECT_EQ(weight_of(bytes, mean, thinned), weight) << mean << " " << bytes;
      }
}

}  // namespace
}  // namespace freehold::profile
