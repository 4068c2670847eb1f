// SPDX-License-Identifier: MIT
// Limits of figures: how often they hold what is true, and what trials they come from.
#include "tools/doctor/facts/resampled.hpp"

#include <gtest/gtest.h>

#include "tests/doctor/made_experiment.hpp"

namespace freehold::doctor {
namespace {

// Nine of ten intervals of a median's estimate should hold the truth; few trials make them wide, not wrong.
TEST(Resampled, Intervals_HoldTheTruth) {
  for (const unsigned trials : {3U, 5U, 9U}) {
    unsigned held = 0;
    constexpr unsigned kTimes = 100;
    for (std::uint64_t seed = 0; seed < kTimes; ++seed) {
      const Made made = Made(0.05, trials, seed).takes(0, 1, 0.8).takes(3, 1, 0.4);
      const Estimate gain = made.verdict().fixes[0].gain;
      held += gain.low <= 2 && 2 <= gain.high;
    }
    EXPECT_GE(held, kTimes * 85 / 100) << trials;
  }
}

// One trial of five takes half as long again. A treatment for which there was time once may have had such a one.
TEST(Resampled, SingleTrialAmongOthersThatStoodStill_LimitsHoldTheTruth) {
  unsigned held = 0;
  constexpr unsigned kTimes = 100;
  for (std::uint64_t seed = 0; seed < kTimes; ++seed) {
    Made made = Made(0.02, 7, seed).takes(0, 1, 0.6).takes(3, 1, 0.4);
    std::mt19937_64 random(seed);
    std::bernoulli_distribution stands_still(0.2);
    for (Cell& cell : made.experiment_.cells) {
      if (cell.variant == 3) cell.trials.resize(1);
      for (Trial& trial : cell.trials)
        if (stands_still(random)) trial.wall_s *= 1.5, trial.user_s *= 1.5;
    }
    const auto& cells = made.experiment_.cells;
    const Estimate gain =
        Resampled(made.experiment_).estimate([&](const auto& costs) { return costs(cells[1]) / costs(cells[3]); });
    held += gain.low <= 1.5 && 1.5 <= gain.high;
  }
  EXPECT_GE(held, kTimes * 85 / 100);
}

// Other processes disturbed one of two trials a little. The second may have stood still for another reason.
TEST(Resampled, OneOfTwoTrialsDisturbed_BothCount) {
  Made made(0.01, 5);
  made.takes(0, 1, 0.5).takes(3, 1, 0.5);
  Cell& treated = made.experiment_.cells[3];
  treated.trials.resize(2);
  treated.trials[0].taken_s = 0.06 * treated.trials[0].wall_s * kCpus;
  treated.trials[1].wall_s *= 1.6;
  treated.trials[1].user_s *= 1.6;
  EXPECT_GE(made.verdict().fixes[0].gain.high, 0.95);
}

// As measured: eight trials, of which others disturbed some a little, and one stood still for a second without a trace.
TEST(Resampled, TrialThatStoodStillBesideOthers_IsNoUndisturbedOne) {
  Made made = Made(0.03, 8).takes(0, 1, 0.6).takes(3, 1, 0.2);
  std::vector<Trial>& trials = made.experiment_.cells[3].trials;
  for (const unsigned disturbed : {0U, 2U, 4U, 7U}) trials[disturbed].taken_s = 0.08 * trials[disturbed].wall_s * kCpus;
  trials[3].wall_s = 1.3;
  const Estimate gain = made.verdict().fixes[0].gain;
  EXPECT_NEAR(gain.value, 3, 0.3);
  EXPECT_GT(gain.low, 2.5);
}

// The machine is slower in some rounds than in others, for all cells alike.
Made with_drifts(Made made, double drift, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> any(0, drift);
  std::vector<double> of_round(16);
  for (double& factor : of_round) factor = std::exp(any(random));
  for (Cell& cell : made.experiment_.cells)
    for (unsigned round = 0; round < cell.trials.size(); ++round) {
      cell.trials[round].round = round;
      cell.trials[round].wall_s *= of_round[round];
      cell.trials[round].user_s *= of_round[round];
    }
  return made;
}

TEST(Resampled, RoundsDrift_WhatIsComparedIsNot) {
  Made made = with_drifts(Made(0.01, 4).takes(0, 1, 0.5).takes(2, 1, 0.5).takes(3, 1, 0.43).copies(1), 0.3, 1);
  const Fix paired = made.verdict().fixes[1];
  EXPECT_LT(paired.gain.high - paired.gain.low, 0.1);
  EXPECT_TRUE(paired.helps);
  for (Cell& cell : made.experiment_.cells)
    for (Trial& trial : cell.trials) trial.round.reset();
  const Fix apart = made.verdict().fixes[1];
  EXPECT_GT(apart.gain.high - apart.gain.low, 0.3) << "it is unknown which belong together";
}

TEST(Resampled, IntervalsOfDriftingRounds_HoldTheTruth) {
  for (const double drift : {0.0, 0.2}) {
    for (const bool some_are_missing : {false, true}) {
      unsigned held = 0;
      constexpr unsigned kTimes = 100;
      for (std::uint64_t seed = 0; seed < kTimes; ++seed) {
        Made made = with_drifts(Made(0.05, 5, seed).takes(0, 1, 0.8).takes(3, 1, 0.4).takes(4, 1, 0.4), drift, seed);
        if (some_are_missing)
          for (Cell& cell : made.experiment_.cells)
            if (cell.variant == 3) cell.trials.pop_back();
        const Estimate gain = made.verdict().fixes[0].gain;
        held += gain.low <= 2 && 2 <= gain.high;
      }
      EXPECT_GE(held, kTimes * 85 / 100) << drift << ", " << some_are_missing;
    }
  }
}

TEST(Resampled, DisturbedTrials_LeftOut) {
  Made made(0.01, 5);
  made.takes(0, 1, 0.5);
  for (unsigned i = 0; i < 2; ++i) {
    made.experiment_.cells[1].trials[i].wall_s = 2;
    made.experiment_.cells[1].trials[i].stolen_s = 1.5;
  }
  EXPECT_NEAR(made.verdict().speedup.value, 2, 0.05);
}

}  // namespace
}  // namespace freehold::doctor
