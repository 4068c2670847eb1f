// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "cli/support/failure.hpp"
#include "cli/timers/results_json.hpp"
#include "cli/timers/run.hpp"
#include "cli/timers/table.hpp"
#include "tests/unit/cli/timers_support.hpp"

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

TEST(TimersPlan, Order_EveryCellOnceAndTheStructuresOfARowTogether) {
  const Settings settings = results_with(wheel_suffers).settings;
  const std::vector<Cell> cells = cells_of(settings);
  const std::vector<std::size_t> order = order_of(cells, 1);
  EXPECT_EQ(std::set(order.begin(), order.end()).size(), cells.size());
  std::size_t changes = 0;
  for (std::size_t i = 1; i < order.size(); ++i) changes += cells[order[i]].row == cells[order[i - 1]].row ? 0 : 1;
  EXPECT_EQ(changes + 1, rows_of(settings).size());
  EXPECT_NE(order, order_of(cells, 2));
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

TEST(TimersLoops, Shared_EveryUserTakesPart) {
  using Queue = OwnTimers<IntrusiveQueue<CountedAnyThread>>;
  const Report report = run_on<Queue>(job_with(Trial::kShared, 3));
  EXPECT_EQ(report.group.correct, 1u);
  EXPECT_GE(cost_of(report, Phase::kRearm).operations, 3u * kBlock);
  EXPECT_GE(cost_of(report, Phase::kRearm).cpu_ns, 3'000'000u);
}

// Goes on for more than an hour of the timers' time, so that some fire.
TEST(TimersLoops, Rearm_TimersThatFiredAreNoMistake) {
  Job job = job_with(Trial::kRearm);
  Simple s(job.timers, false);
  Share share;
  g_fired.begin(0);
  s.begin();
  for (std::uint32_t i = 0; i < job.timers; ++i) {
    s.create(i);
    s.set(i, std::chrono::seconds(1));
  }
  rearm(s, job, 0, share);
  EXPECT_GT(g_fired.count(), 0u);
  EXPECT_EQ(cancel_all(s, job) + g_fired.count(), job.timers + share.too_late);
}

// An owner that is told of timers by others has millions of them to put in order: not as a part of what is timed.
struct LooksSeen : Simple {
  using Simple::Simple;
  static inline std::uint32_t looks = 0, looks_before_cancel = 0;
  void look(Nanoseconds time) noexcept {
    ++looks;
    Simple::look(time);
  }
  [[nodiscard]] bool cancel(std::uint32_t i) noexcept {
    if (std::exchange(first_, false)) looks_before_cancel = looks;
    return Simple::cancel(i);
  }

 private:
  bool first_ = true;
};
TEST(TimersLoops, Rearm_TheOwnerHasLookedBefore) {
  EXPECT_EQ(run_on<LooksSeen>(job_with(Trial::kRearm)).group.correct, 1u);
  EXPECT_EQ(LooksSeen::looks_before_cancel, 1u);
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

TEST(TimersLoops, Load_WorksWhileTheUsersAreTimed) {
  Job job = job_with(Trial::kRandom);
  job.load = Load::kHeap;
  job.background = 2;
  job.milliseconds = 5;
  EXPECT_GT(run_on<Simple>(job).background_operations, 0u);
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

TEST(TimersResults, All_IsTheSumOfThePhasesByTimer) {
  const Results results = results_with(wheel_suffers);
  const Series* const series = results.find(Row{Trial::kRandom, results.settings.count, 1}, Load::kAlone, kWheelAt);
  EXPECT_DOUBLE_EQ(*median_of(series, Phase::kAll, Figure::kCpu), 30);
  EXPECT_DOUBLE_EQ(*median_of(series, Phase::kSet, Figure::kCpu), 10);
  EXPECT_DOUBLE_EQ(*median_of(series, Phase::kSet, Figure::kWall), 20);
  EXPECT_DOUBLE_EQ(*median_of(series, Phase::kSet, Figure::kSleeps), 0.5);
  EXPECT_DOUBLE_EQ(*median_of(series, Phase::kSet, Figure::kWaits), 0.25);
}

TEST(TimersResults, Targets_MissedOnesAreMarked) {
  const Results results = results_with(wheel_suffers);
  const std::vector<Target> targets = targets_of(results);
  // Four gains; two structures, two tests, two loads to compare with; four numbers of timers; the wheel's growth,
  // and that over the baseline's.
  ASSERT_EQ(targets.size(), 4u + 2 * 2 * 2 + 4 + 2);
  for (const Target& target : targets)
    EXPECT_EQ(target.is_reached(), !target.text.starts_with("wheel, ")) << target.text << ' ' << target.ratio.median;
  const std::string table = table_of(results);
  EXPECT_NE(table.find("\n- wheel, random: heap threads / none"), std::string::npos) << table;
  EXPECT_NE(table.find("\n  create, set and handle, random: container / container-private"), std::string::npos);
}

TEST(TimersResults, NothingMeasured_NoFiguresButNoHarm) {
  Results results = results_with(wheel_suffers);
  for (Series& series : results.series) series.samples.clear();
  results.complete = false;
  EXPECT_TRUE(targets_of(results).empty());
  EXPECT_EQ(notes_of(results).size(), 1u);
  EXPECT_NE(table_of(results).find("Interrupted"), std::string::npos);
  const nlohmann::ordered_json json = results_json(results);
  for (const auto& series : json.at("series")) EXPECT_TRUE(series.at("phases")[0].at("cpu_ns").is_null());
}

}  // namespace
}  // namespace freehold::cli::timers
