// SPDX-License-Identifier: MIT
// The bound of freehold doctor, on programs that run and of which it is known what malloc costs them: the same arithmetic is
// run with and without calls. A bound may be wide, above all on a busy machine, but what is known must lie below it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/measured.hpp"
#include "tools/doctor/run/program.hpp"

namespace freehold::tests {
namespace {
using nlohmann::json;

constexpr int kTimes = 5;
constexpr double kMeasured = 0.03;  // what the least of so many times may be wrong by

// Blocks that glibc's malloc has no quick way for: a clock tells how long such a call takes, on fast machines, too.
std::vector<std::string> program(int pairs) { return {FREEHOLD_KNOWN_SHARE, "1000000", std::to_string(pairs), "2000"}; }

// CPU time with these calls divided by that without any: the most that an allocator could do. In turns, the least of each.
double known_gain(int pairs) {
  doctor::Host host;
  sigemptyset(&host.mask);
  const auto seconds = [&host](int of) {
    return doctor::run({.file = program(of).front(), .arguments = program(of)}, {.preload = {}}, 60, host).trial.user_s;
  };
  double with = seconds(pairs), without = seconds(0);
  for (int i = 1; i < kTimes; ++i) {
    with = std::min(with, seconds(pairs));
    without = std::min(without, seconds(0));
  }
  return with / without;
}

json report_of(int pairs) { return doctor_report({"--repeat", "3", "--allocators", "freehold"}, program(pairs)); }

// Returns whether another malloc made the program faster than the bound could be: then the doctor withdraws it.
bool may_be_withdrawn(const json& report) {
  return std::ranges::any_of(report.at("fixes"),
                             [](const json& fix) { return fix.at("helps") && fix.at("gain").at("low") > 1.0; });
}

class BoundOfARun : public testing::TestWithParam<int> {};

// The known figure is measured before and after; where the two disagree, the machine was disturbed between, and nothing is
// known. The upper limit of a range is exceeded once in twenty times, so that the bound is wrong only if what is known lies
// above it twice. One that is missing, or so wide that it says nothing, is asked for again. Where the time of a call was
// measured too short, as happens on some hosts, Freehold beats the bound, and then none is told, rightly.
TEST_P(BoundOfARun, KnownShareInMalloc_LiesBelowTheBound) {
  constexpr int kTries = 4;
  std::vector<std::string> above, empty;
  for (int i = 0; i < kTries; ++i) {
    const double before = known_gain(GetParam());
    const json report = report_of(GetParam()), verdict = report.at("verdict"), most = verdict.at("most_gain");
    const double after = known_gain(GetParam());
    const auto [low, high] = std::minmax(before, after);
    if (high > low * (1 + kMeasured)) continue;
    const std::string told = most.dump() + ", known: " + std::to_string(low) + " to " + std::to_string(high);
    const double bound = most.is_null() ? HUGE_VAL : most.at("high").get<double>();
    if (bound < low * (1 - kMeasured)) {
      above.push_back(told);
      ASSERT_LT(above.size(), 2) << above.front() << '\n' << above.back();
      continue;
    }
    if (most.is_null() ? high > 2 : bound <= 1.1 + 4 * (high - 1)) return;
    if (!verdict.at("noisy") && !(most.is_null() && may_be_withdrawn(report))) empty.push_back(told);
  }
  EXPECT_LT(empty.size(), 3) << "bounds that say nothing: " << empty.front() << '\n' << empty.back();
  GTEST_SKIP() << "the machine was disturbed all the time";
}

INSTANTIATE_TEST_SUITE_P(PairsOfCalls, BoundOfARun, testing::Values(0, 2));

}  // namespace
}  // namespace freehold::tests
