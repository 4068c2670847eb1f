// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "cli/support/failure.hpp"
#include "lab/timers/results_json.hpp"
#include "lab/timers/run.hpp"
#include "lab/timers/table.hpp"
#include "tests/unit/lab/timers_support.hpp"

namespace freehold::cli::timers {
namespace {

// ---- the plan

TEST(TimersPlan, Words_NameTheWholeJob) {
  const Job job{.structure = "a-wheel",
                .test = Trial::kShared,
                .load = Load::kBusy,
                .timers = 1000,
                .users = 4,
                .background = 8,
                .milliseconds = 150};
  EXPECT_EQ(job_of(words_of(job)), job);
  std::vector<std::string> words = words_of(job);
  words[1] = "dance";
  EXPECT_THROW((void)job_of(words), std::runtime_error);
  words.pop_back();
  EXPECT_THROW((void)job_of(words), std::runtime_error);
}

TEST(TimersPlan, Cells_EachOnceAndOnlyWhereAStructureTakesPart) {
  const Results results = results_with(wheel_suffers);
  for (const Series& series : results.series) {
    EXPECT_EQ(std::ranges::count(results.series, series.cell, &Series::cell), 1);
    if (series.cell.structure == kPeerAt) {
      EXPECT_NE(series.cell.row.test, Trial::kShared);
    }
    if (series.cell.structure == kBaselineAt) {
      EXPECT_EQ(series.cell.row.test, Trial::kRearm);
    }
    EXPECT_EQ(job_of(results.settings, series.cell).background, series.cell.load == Load::kAlone ? 0u : 8u);
  }
  // Five lives, four numbers of timers, two of users.
  EXPECT_EQ(rows_of(results.settings).size(), 5u + 4 + 2);
}

TEST(TimersPlan, Structures_KnownNamesInTheOrderOfTheTables) {
  const auto chosen = parse_structures("libuv,container,libuv");
  ASSERT_EQ(chosen.size(), 2u);
  EXPECT_EQ(chosen[0]->name, "container");
  EXPECT_EQ(chosen[1]->name, "libuv");
  EXPECT_THROW((void)parse_structures("no-such-queue"), Failure);
}

// ---- the loops

Job job_with(Trial test, std::uint32_t users = 1) {
  return {.structure = "",
          .test = test,
          .load = Load::kAlone,
          .timers = 500,
          .users = users,
          .background = 0,
          .milliseconds = 1};
}

const Cost& cost_of(const Report& report, Phase phase) { return report.costs[static_cast<std::size_t>(phase)]; }

using Simple = OwnTimers<ContainerOnProgramHeap<timer::SingleThreaded>>;

TEST(TimersLoops, Life_EveryPhaseIsTimedForEveryTimer) {
  for (const Trial test : kTests) {
    if (!is_life(test)) continue;
    const Report report = run_on<Simple>(job_with(test));
    EXPECT_EQ(report.group.correct, 1u) << name_of(test);
    const std::uint64_t operations = cost_of(report, Phase::kCreate).operations;
    EXPECT_GT(operations, 0u);
    EXPECT_EQ(operations % 500, 0u);
    EXPECT_EQ(is_fresh(test), operations == 500) << name_of(test);
    for (const Phase phase : phases_of(test)) {
      if (phase == Phase::kAll) continue;
      EXPECT_EQ(cost_of(report, phase).operations, operations) << name_of(phase);
      EXPECT_GT(cost_of(report, phase).cpu_ns, 0u) << name_of(phase);
    }
    EXPECT_EQ(cost_of(report, Phase::kRearm).operations, 0u);
  }
}

enum class Defect { kNone, kLosesOne, kFiresTwice, kDisorder, kCancelsInVain, kForgetsToSet };

// A queue that does one thing wrong.
template <Defect kDefect>
class Defective : public Simple {
 public:
  using Simple::Simple;
  void set(std::uint32_t i, Nanoseconds time) noexcept {
    if (kDefect == Defect::kForgetsToSet && i == 7) return;
    if (kDefect == Defect::kDisorder && i == 7) time = kHour / 7 * (++calls_ % 7);
    Simple::set(i, time);
  }
  [[nodiscard]] bool cancel(std::uint32_t i) noexcept {
    if (kDefect == Defect::kCancelsInVain && i == 7) return true;
    return Simple::cancel(i);
  }
  void expire() noexcept {
    if (kDefect == Defect::kLosesOne) (void)Simple::cancel(7);
    Simple::expire();
    if (kDefect == Defect::kFiresTwice) g_fired.note(7);
  }

 private:
  std::int64_t calls_ = 0;
};

TEST(TimersLoops, Defects_AreNoticed) {
  EXPECT_EQ(run_on<Defective<Defect::kNone>>(job_with(Trial::kRandom)).group.correct, 1u);
  EXPECT_EQ(run_on<Defective<Defect::kLosesOne>>(job_with(Trial::kRandom)).group.correct, 0u);
  EXPECT_EQ(run_on<Defective<Defect::kFiresTwice>>(job_with(Trial::kRandom)).group.correct, 0u);
  EXPECT_EQ(run_on<Defective<Defect::kDisorder>>(job_with(Trial::kRandom)).group.correct, 0u);
  EXPECT_EQ(run_on<Defective<Defect::kCancelsInVain>>(job_with(Trial::kCancel)).group.correct, 0u);
  EXPECT_EQ(run_on<Defective<Defect::kForgetsToSet>>(job_with(Trial::kRearm)).group.correct, 0u);
}

TEST(TimersBackground, EachLoad_IsAtWorkFromTheBeginning) {
  for (const Load load : {Load::kBusy, Load::kHeap}) {
    const Background background(load, 3);
    const std::uint64_t before = background.operations();
    EXPECT_GT(before, 0u);
    background.wait_for_each();
    EXPECT_GE(background.operations(), before + 3);
  }
  EXPECT_EQ(Background(Load::kAlone, 3).operations(), 0u);
}

// ---- what is computed from the samples

TEST(TimersResults, Ratio_IsThatOfEachSet) {
  const Results results = results_with([](const Cell& cell, std::size_t set) {
    return cell.structure == kPrivateAt ? 10.0 : 10.0 * static_cast<double>(set + 1);
  });
  const Row row{Trial::kRandom, results.settings.count, 1};
  const auto ratio = ratio_of(results.find(row, Load::kAlone, kReference), results.find(row, Load::kAlone, kPrivate),
                              Phase::kAll, Figure::kCpu);
  ASSERT_TRUE(ratio);
  EXPECT_DOUBLE_EQ(ratio->least, 1);
  EXPECT_DOUBLE_EQ(ratio->median, 2);
  EXPECT_DOUBLE_EQ(ratio->greatest, 3);
}

}  // namespace
}  // namespace freehold::cli::timers
