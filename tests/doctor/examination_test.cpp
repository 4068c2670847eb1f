// SPDX-License-Identifier: MIT
// An examination: the runs that fit into its time, how each of them is launched, and the outcome.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/work_growth.hpp"
#include "tools/doctor/run/child.hpp"
#include "tools/doctor/run/examination.hpp"
#include "tools/doctor/run/launch.hpp"
#include "tools/doctor/run/plan.hpp"
#include "tools/doctor/run/schedule.hpp"
#include "tools/doctor/run/throughput.hpp"

namespace freehold::doctor {
namespace {

const std::vector<Variant> kVariants{
    {.treatment = Treatment::kNone, .name = "system", .preload = {}},
    {.treatment = Treatment::kCappedArenas, .name = "glibc, 4 arenas", .preload = {}},
    {.treatment = Treatment::kPadded, .name = "padded", .preload = {"/pad.so"}},
    {.treatment = Treatment::kFreehold, .name = "freehold", .preload = {"/freehold.so"}},
    {.treatment = Treatment::kPeer, .name = "jemalloc", .preload = {"/jemalloc.so"}},
};

Settings by_affinity(std::vector<unsigned> widths) {
  Settings settings;
  settings.command = {"./prog", "--size=3"};
  settings.widths = std::move(widths);
  return settings;
}

class Plan : public testing::Test {
 protected:
  explicit Plan(std::vector<unsigned> widths = {1, 2, 4})
      : tasks_(tasks_of(by_affinity(std::move(widths)), kVariants, 4, true, false)), goals_(goals_of(tasks_, kVariants)) {}

  // How often this one is to be run where each run takes `cost` and there are `seconds`.
  [[nodiscard]] unsigned runs(const Task& task, double seconds, double cost = 1) const {
    const std::vector<unsigned> done(tasks_.size());
    const std::vector<double> costs(tasks_.size(), cost);
    const auto targets = targets_of(goals_, done, costs, seconds);
    return targets[index(task)];
  }
  [[nodiscard]] std::size_t index(const Task& task) const {
    const auto found = std::ranges::find(tasks_, task);
    EXPECT_NE(found, tasks_.end());
    return static_cast<std::size_t>(found - tasks_.begin());
  }
  [[nodiscard]] double total(double seconds) const {
    const auto targets =
        targets_of(goals_, std::vector<unsigned>(tasks_.size()), std::vector<double>(tasks_.size(), 1), seconds);
    double sum = 0;
    for (const unsigned target : targets) sum += target;
    return sum;
  }

  std::vector<Task> tasks_;
  std::vector<Goal> goals_;
};

const Setting kAlone{.threads = 0, .cpus = 1};
const Setting kAll{.threads = 0, .cpus = 4};
const Setting kCopies{.threads = 0, .cpus = 1, .copies = 4};

TEST_F(Plan, Tasks_EveryQuestionIsAsked) {
  // system, freehold and jemalloc in three settings; arenas and padded at both ends; copies; two recordings; two sampled.
  EXPECT_EQ(tasks_.size(), 3u * 3 + 2 * 2 + 1 + 2 + 2);
  for (const Task& task : tasks_) {
    const bool has_goal = std::ranges::any_of(goals_, [&](const Goal& goal) { return tasks_[goal.task] == task; });
    EXPECT_TRUE(has_goal) << task.variant << ' ' << task.setting.cpus;
  }
  std::vector<Task> different;
  for (const Task& task : tasks_)
    if (std::ranges::find(different, task) == different.end()) different.push_back(task);
  EXPECT_EQ(different.size(), tasks_.size());
}

TEST_F(Plan, LittleTime_GoesToWhatMattersMost) {
  EXPECT_EQ(runs({.variant = 3, .setting = kAll}, 5), 1u);
  EXPECT_EQ(runs({.variant = 3, .setting = kAlone}, 5), 1u);
  EXPECT_EQ(runs({.variant = 0, .setting = kAll, .recording = true}, 5), 1u);
  EXPECT_EQ(runs({.variant = 4, .setting = kAll}, 5), 0u);
  // Padding tells data that threads share from malloc's blocks, copies tell it from memory: both come before other
  // treatments.
  EXPECT_EQ(runs({.variant = 2, .setting = kAll}, 12), 1u);
  EXPECT_EQ(runs({.variant = 0, .setting = kCopies}, 15), 1u);
  EXPECT_EQ(runs({.variant = 1, .setting = kAll}, 15), 0u);
  // Three rounds at both ends before a peer's first.
  EXPECT_EQ(runs({.variant = 4, .setting = kAll}, 20), 0u);
  EXPECT_EQ(runs({.variant = 0, .setting = kAll}, 20), 3u);
  EXPECT_EQ(runs({.variant = 3, .setting = kAlone}, 20), 3u);
  EXPECT_EQ(runs({.variant = 0, .setting = kCopies}, 20), 1u);
}

// If malloc takes no time, the program itself is run as often as time allows, and other mallocs once the rest was done.
TEST_F(Plan, MallocIsIdle_TimeGoesToTheProgramItself) {
  const auto targets = [&](bool malloc_is_idle) {
    const std::vector<unsigned> none(tasks_.size());
    const std::vector<double> a_second(tasks_.size(), 1.0);
    return targets_of(goals_of(tasks_, kVariants, malloc_is_idle), none, a_second, 20);
  };
  const std::vector<unsigned> idle = targets(true), used = targets(false);
  unsigned of_program = 0, of_peers = 0;
  for (std::size_t task = 0; task < tasks_.size(); ++task) {
    const Treatment treatment = kVariants[tasks_[task].variant].treatment;
    if (treatment == Treatment::kPeer || treatment == Treatment::kCappedArenas) of_peers += idle[task];
    if (treatment != Treatment::kNone || !tasks_[task].is_trial()) continue;
    EXPECT_GE(idle[task], used[task]);
    of_program += idle[task];
  }
  EXPECT_EQ(of_peers, 0U);
  EXPECT_GE(of_program, 8U);
  for (const Goal& goal : goals_of(tasks_, kVariants, true))
    EXPECT_TRUE(!goal.decides || kVariants[tasks_[goal.task].variant].treatment != Treatment::kCappedArenas);
}

TEST_F(Plan, PlentyOfTime_NineRoundsAndNoMore) {
  EXPECT_EQ(runs({.variant = 0, .setting = kAll}, 1e9), kMostRounds);
  EXPECT_EQ(runs({.variant = 4, .setting = {.threads = 0, .cpus = 2}}, 1e9), kMostRounds);
  EXPECT_EQ(runs({.variant = 0, .setting = kAll, .recording = true}, 1e9), 1u);
}

// A program of five seconds on two CPUs that scales: what a verdict needs fits into the default budget, or nearly: the
// copies come a little later.
TEST_F(Plan, FiveSeconds_DefaultBudgetSufficesForMost) {
  const std::vector<unsigned> widths{1, 2};
  const auto tasks = tasks_of(by_affinity(widths), kVariants, 2, true, false);
  const auto goals = goals_of(tasks, kVariants);
  std::vector<double> costs;
  for (const Task& task : tasks) costs.push_back((task.setting.cpus == 2 ? 5 : 10) * (task.recording ? 1.3 : 1));
  const auto runs_of = [&](const Task& task, double seconds = 100) {
    const auto targets = targets_of(goals, std::vector<unsigned>(tasks.size()), costs, seconds);
    return targets[static_cast<std::size_t>(std::ranges::find(tasks, task) - tasks.begin())];
  };
  const Setting alone{.threads = 0, .cpus = 1}, all{.threads = 0, .cpus = 2};
  for (const std::size_t variant : {0u, 3u}) {
    EXPECT_EQ(runs_of({.variant = variant, .setting = all}), 3u);
    EXPECT_GE(runs_of({.variant = variant, .setting = alone}), 2u);
  }
  EXPECT_EQ(runs_of({.variant = 0, .setting = all, .sampled = true}), 1u);
  EXPECT_GE(runs_of({.variant = 0, .setting = {.threads = 0, .cpus = 1, .copies = 2}}, 115), 1u);
  EXPECT_EQ(runs_of({.variant = 0, .setting = all, .recording = true}), 1u);
}

TEST(Launch, Argument_EveryMarkIsTheNumber) {
  Settings settings = by_affinity({1, 2});
  settings.parallelism = ParallelismControl::kArgument;
  settings.command = {"./prog", "-t", "{n}", "--pool={n}x{n}"};
  const auto command = command_of(settings, "/bin/prog", {.threads = 12, .cpus = 4});
  EXPECT_EQ(command.file, "/bin/prog");
  EXPECT_EQ(command.arguments, (std::vector<std::string>{"./prog", "-t", "12", "--pool=12x12"}));
}

TEST(Launch, Affinity_CopiesHaveCpusOfTheirOwn) {
  const std::vector<unsigned> cpus{0, 2, 1, 3};
  const Settings settings = by_affinity({1, 2, 4});
  EXPECT_TRUE(launch_options_of(settings, kVariants[0], kAll, cpus).front().cpus.empty())
      << "all CPUs: the mask stays as it is";
  EXPECT_EQ(launch_options_of(settings, kVariants[0], {.threads = 0, .cpus = 2}, cpus).front().cpus,
            (std::vector<unsigned>{0, 2}));
  const auto copies = launch_options_of(settings, kVariants[0], kCopies, cpus);
  ASSERT_EQ(copies.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(copies[i].cpus, std::vector<unsigned>{cpus[i]});
}

TEST(Launch, Environment_ThreadsAndTreatmentBoth) {
  Settings settings = by_affinity({1, 2});
  settings.parallelism = ParallelismControl::kEnvironment;
  settings.parallelism_text = "OMP_NUM_THREADS";
  Variant arenas = kVariants[1];
  arenas.environment = {{"MALLOC_ARENA_MAX", "4"}};
  const auto options = launch_options_of(settings, arenas, {.threads = 2, .cpus = 4}, {0, 1, 2, 3}).front();
  EXPECT_EQ(options.environment,
            (std::vector<std::pair<std::string, std::string>>{{"MALLOC_ARENA_MAX", "4"}, {"OMP_NUM_THREADS", "2"}}));
}

TEST(Throughput, FirstMatch_TheGroupIsTheNumber) {
  const Throughput rate("rate: ([0-9.,]+)/s");
  EXPECT_EQ(rate.find("started\nrate: 1,234.5/s\nrate: 7/s\n"), 1234.5);
  EXPECT_EQ(rate.find("rate: 0/s\n"), std::nullopt);
  EXPECT_EQ(rate.find("no rate\n"), std::nullopt);
  EXPECT_EQ(rate.find(std::string(1 << 20, 'x')), std::nullopt);
}

TEST(PlanOfDelays, Delays_OnAllCpusAndOnlyWithARecording) {
  const auto delays = [](bool record) {
    const auto tasks = tasks_of(by_affinity({1, 2}), kVariants, 2, record, true);
    for (const Task& task : tasks) EXPECT_TRUE(task.delay_ns == 0 || task.setting.cpus == 2U);
    return std::ranges::count_if(tasks, [](const Task& task) { return task.delay_ns > 0; });
  };
  EXPECT_GE(delays(true), 2);
  EXPECT_EQ(delays(false), 0) << "what a call takes is not known";
}

// ---- the schedule

class OfTwo : public testing::Test {
 protected:
  explicit OfTwo(double budget_s = 1e9)
      : tasks_(tasks_of(by_affinity({1, 4}), kVariants, 4, true, false)),
        schedule_(tasks_, goals_of(tasks_, kVariants),
                  {.budget_s = budget_s, .began_s = now_s(), .first_elapsed_s = 1, .first_cpu_s = 4}) {}
  [[nodiscard]] std::size_t index(const Task& task) const { return schedule_.index_of(task).value(); }

  std::vector<Task> tasks_;
  Schedule schedule_;
  const Task alone_{.variant = 0, .setting = kAlone}, all_{.variant = 0, .setting = kAll};
};

TEST_F(OfTwo, Estimates_ByTheFirstRunUntilThereIsABetter) {
  EXPECT_DOUBLE_EQ(schedule_.estimate(index(all_)), 1);
  EXPECT_DOUBLE_EQ(schedule_.estimate(index(alone_)), 4) << "its CPU time on one CPU";
  EXPECT_GT(schedule_.estimate(index({.variant = 0, .setting = kAll, .recording = true})), 1) << "recording costs time";
  schedule_.count(index(alone_), 6);
  EXPECT_DOUBLE_EQ(schedule_.estimate(index(alone_)), 6);
  EXPECT_DOUBLE_EQ(schedule_.estimate(index({.variant = 3, .setting = kAlone})), 6) << "as the program as it is";
}

// Others held up the first run, which took 7 s, and then these go before them: there is time for a run on one CPU.
TEST_F(OfTwo, RunsThatWereHeldUp_SayLittleOfTheNext) {
  Schedule schedule(tasks_, goals_of(tasks_, kVariants),
                    {.budget_s = 20, .began_s = now_s() - 11, .first_elapsed_s = 7, .first_cpu_s = 2});
  schedule.count(index(all_), 7, true);
  schedule.count(index(all_), 0.4, true);
  EXPECT_DOUBLE_EQ(schedule.estimate(index(all_)), 0.4);
  EXPECT_DOUBLE_EQ(schedule.estimate(index(alone_)), 1.6) << "four CPUs have no more time in such a run";
  EXPECT_GE(schedule.targets()[index(alone_)], 1u);
  schedule.count(index(all_), 0.5);
  EXPECT_DOUBLE_EQ(schedule.estimate(index(all_)), 0.5);
  schedule.count(index(alone_), 0.1);
  EXPECT_DOUBLE_EQ(schedule.estimate(index({.variant = 0, .setting = kCopies})), 1.6) << "fewer threads may have less work";
}

TEST_F(OfTwo, DisturbedRuns_AreRepeatedAFewTimes) {
  const std::size_t peer = index({.variant = 4, .setting = kAll});
  const unsigned before = schedule_.targets()[peer];
  for (int i = 0; i < 20; ++i) schedule_.count(peer, 1, true);
  EXPECT_EQ(schedule_.targets()[peer], std::max(20u, before + 6));
}

// They told little, but what nothing told of comes first.
TEST_F(OfTwo, FirstRunsDisturbed_RecordingComesBeforeTheirRepetition) {
  Schedule schedule(tasks_, goals_of(tasks_, kVariants),
                    {.budget_s = 20, .began_s = now_s() - 12, .first_elapsed_s = 3.8, .first_cpu_s = 6.5});
  for (const std::size_t variant : {0, 3}) {
    schedule.count(index({.variant = variant, .setting = kAll}), 3.6, true);
    schedule.count(index({.variant = variant, .setting = kAlone}), 0.5, false);
  }
  EXPECT_EQ(schedule.targets()[index({.variant = 0, .setting = kAll, .recording = true})], 1U);
}

// A last run may begin shortly before the budget ends; waiting half as long again for its end would spend another half of
// it.
TEST_F(OfTwo, LateRun_IsNotWaitedForBeyondTheGrace) {
  const auto late = [this](double left_s, double grace_s) {
    return Schedule(
        tasks_, goals_of(tasks_, kVariants),
        {.budget_s = 20, .grace_s = grace_s, .began_s = now_s() - 20 + left_s, .first_elapsed_s = 2, .first_cpu_s = 8});
  };
  EXPECT_NEAR(late(8.5, 1).in_time(index(alone_)), 9.5, 0.5) << "8 s are expected, and 12 would be half as many again";
  EXPECT_NEAR(late(8.5, 9).in_time(index(alone_)), 12, 0.5);
  EXPECT_NEAR(late(15, 1).in_time(index(alone_)), 15, 0.5) << "what was left";
}

// ---- whether work grows

Cell cell_of(const Setting& setting, double wall_s, double cpu_s) {
  Trial trial;
  trial.wall_s = wall_s;
  trial.user_s = cpu_s;
  return {.variant = 0, .setting = setting, .trials = {trial, trial}, .failure = {}};
}

Experiment with_threads(double cpu_of_two_s) {
  Experiment experiment;
  experiment.parallelism = ParallelismControl::kArgument;
  experiment.variants = {{Treatment::kNone, "system", {}}};
  experiment.cells = {cell_of({.threads = 1, .cpus = 2}, 1, 1), cell_of({.threads = 2, .cpus = 2}, 1, cpu_of_two_s)};
  return experiment;
}

// Threads that write the same lines need twice the CPU time, and execute what one executes.
TEST(WorkGrowth, CpuTimeOfTwoThreads_SaysWhetherOneCpuIsAsked) {
  EXPECT_FALSE(more_threads_need_more(with_threads(1.05)));
  EXPECT_TRUE(more_threads_need_more(with_threads(1.2)));
  EXPECT_FALSE(more_threads_need_more({}));
}

TEST(WorkGrowth, AsManyInstructions_TheWorkIsShared) {
  Experiment experiment = with_threads(2);
  EXPECT_TRUE(work_growth_of(experiment, nullptr, nullptr).is_guessed);
  EXPECT_FALSE(instruction_growth_of(experiment));
  for (Cell& cell : experiment.cells)
    for (Trial& trial : cell.trials) trial.instructions = cell.setting.threads == 1 ? 1e9 : 1.1e9;
  EXPECT_DOUBLE_EQ(instruction_growth_of(experiment).value(), 1.1);
  EXPECT_FALSE(work_growth_of(experiment, nullptr, nullptr).grows);
  EXPECT_FALSE(work_growth_of(experiment, nullptr, nullptr).is_guessed);
  for (Trial& trial : experiment.cells[1].trials) trial.instructions = 2e9;
  EXPECT_TRUE(work_growth_of(experiment, nullptr, nullptr).is_guessed) << "they may spin";
  experiment.cells[1].trials[0].instructions.reset();
  EXPECT_FALSE(instruction_growth_of(experiment)) << "not counted in each";
}

TEST(WorkGrowth, HalfAsManyInstructions_SayNothing) {
  Experiment experiment = with_threads(2);
  for (Cell& cell : experiment.cells)
    for (Trial& trial : cell.trials) trial.instructions = cell.setting.threads == 1 ? 1e9 : 0.5e9;
  EXPECT_FALSE(instruction_growth_of(experiment));
  EXPECT_TRUE(work_growth_of(experiment, nullptr, nullptr).is_guessed) << "as without a count";
}

TEST(WorkGrowth, ManyAllocations_TheyDecide) {
  Attribution alone, all;
  alone.allocating.calls = 20'000;
  all.allocating.calls = 40'000;
  EXPECT_TRUE(work_growth_of(with_threads(1), &all, &alone).grows);
  EXPECT_FALSE(work_growth_of(with_threads(1), &all, &alone).is_guessed);
  all.allocating.calls = 20'000;
  EXPECT_FALSE(work_growth_of(with_threads(2), &all, &alone).grows) << "twice the CPU time for the same work";
}

// ---- the examination

Caller quiet_caller() {
  const std::vector<Variant> variants{{.treatment = Treatment::kNone, .name = "system", .preload = {}}};
  return {.host = {},
          .show = [](const Activity&) {},
          .tools = [variants](const std::set<std::string>&) { return Tools{.variants = variants}; },
          .signal = [] { return 0; }};
}

Request request_of(std::vector<std::string> command) {
  Request request;
  request.program = command.front();
  request.settings.command = std::move(command);
  request.settings.widths = {1, 2};
  request.settings.parallelism = ParallelismControl::kEnvironment;
  request.settings.parallelism_text = "THREADS";
  request.settings.rounds = 2;
  return request;
}

TEST(Examination, EveryTaskIsRun_AsOftenAsWasAskedFor) {
  const Outcome outcome = examine(request_of({"/bin/sh", "-c", "exit 0"}), quiet_caller());
  for (const unsigned threads : {1u, 2u}) {
    const Cell* const cell =
        outcome.experiment.find(0, {.threads = threads, .cpus = static_cast<unsigned>(outcome.cpus.size())});
    ASSERT_NE(cell, nullptr) << threads;
    EXPECT_EQ(cell->trials.size(), 2u);
  }
  EXPECT_TRUE(outcome.experiment.complete);
  EXPECT_EQ(outcome.recorded, nullptr);
}

// Each thread is a process here, and has all of the work.
TEST(Examination, MoreThreadsNeedMore_RunOnOneCpu) {
  const std::string busy = "busy() { i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; }; busy & ";
  const Outcome more = examine(request_of({"/bin/sh", "-c", busy + "[ $THREADS = 1 ] || busy & wait"}), quiet_caller());
  if (more.cpus.size() < 2) GTEST_SKIP() << "There is only one CPU.";
  ASSERT_EQ(more.experiment.crowded.size(), 2u);
  const Cell* const all = more.experiment.find(0, {.threads = 2, .cpus = static_cast<unsigned>(more.cpus.size())});
  ASSERT_NE(all, nullptr);
  EXPECT_NEAR(more.experiment.crowded[0].cpu_s() / all->trials[0].cpu_s(), 1, 0.5);
}

// A slow starter, such as a wrapper: the budget ends the trials, whatever there was to try.
TEST(Examination, Budget_HoldsForASlowProgram) {
  Request request = request_of({"/bin/sh", "-c", "sleep 0.4"});
  request.settings.rounds = 0;
  request.settings.budget_s = 2;
  const double begin = now_s();
  const Outcome outcome = examine(request, quiet_caller());
  EXPECT_LT(now_s() - begin, 3);
  EXPECT_FALSE(outcome.experiment.cells.empty());
}

// The shim of a version manager starts slowly, and executes a runtime that has an allocator. What the first run leaves no
// time for is not run: neither what counts that allocator's calls nor what records the program without it.
TEST(Examination, FirstRunTookTheBudget_NothingElseIsRun) {
  const std::string runs = testing::TempDir() + "freehold-runs-" + std::to_string(::getpid());
  Request request =
      request_of({"/bin/sh", "-c", "echo x >> " + runs + "; LD_PRELOAD=" FREEHOLD_PYTHON_NAMES " exec sleep 5.6"});
  request.settings.rounds = 0;
  request.settings.budget_s = 6;
  Caller caller = quiet_caller();
  caller.tools = [](const std::set<std::string>& files) {
    EXPECT_TRUE(files.contains(FREEHOLD_PYTHON_NAMES));
    return Tools{.variants = {{.treatment = Treatment::kNone, .name = "system", .preload = {}}}, .probe = "/nonexistent.so"};
  };
  const Outcome outcome = examine(request, caller);
  ASSERT_EQ(outcome.own_allocators.size(), 1U) << "else there is nothing more to run";
  std::ifstream in(runs);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "x\n");
  std::filesystem::remove(runs);
}

TEST_F(OfTwo, OpenVerdict_WhatDecidesIsRunAgain) {
  for (std::size_t task = 0; task < tasks_.size(); ++task)
    for (unsigned i = 0; i < kMostRounds; ++i) schedule_.count(task, 1);
  ASSERT_TRUE(schedule_.order_of_round(kMostRounds).empty());
  ASSERT_TRUE(schedule_.run_again({0, 3}, 2));
  EXPECT_EQ(schedule_.targets()[index(all_)], kMostRounds + 2);
  EXPECT_EQ(schedule_.targets()[index(alone_)], kMostRounds + 2);
  EXPECT_EQ(schedule_.targets()[index({.variant = 4, .setting = kAll})], kMostRounds) << "it decides nothing";
}

// A verdict is formed as soon as each question was asked; while it is open rounds have nothing but what decides.
TEST_F(OfTwo, OpenVerdict_WhatDecidesComesFirst) {
  const auto run_round = [this](unsigned round) {
    const auto order = schedule_.order_of_round(round);
    for (const std::size_t task : order) schedule_.count(task, 1);
    return order;
  };
  run_round(0);
  EXPECT_FALSE(schedule_.can_decide()) << "each trial once, and nothing was recorded";
  run_round(1);
  ASSERT_TRUE(schedule_.can_decide());
  ASSERT_TRUE(schedule_.run_again({0, 3}, 2));
  for (const unsigned round : {2U, 3U})
    for (const std::size_t task : run_round(round)) {
      EXPECT_TRUE(tasks_[task].variant == 0 || tasks_[task].variant == 3) << tasks_[task].variant;
      EXPECT_TRUE(tasks_[task].is_trial());
    }
  const auto after = run_round(4);
  EXPECT_TRUE(std::ranges::any_of(after, [&](std::size_t task) { return tasks_[task].variant == 4; })) << "then the others";
}

// Five runs on all CPUs and two on one: a third one there tells more than a sixth.
TEST(OfLittleTime, OpenVerdict_WhatRanLeastIsRunFirst) {
  const auto tasks = tasks_of(by_affinity({1, 4}), kVariants, 4, true, false);
  Schedule schedule(tasks, goals_of(tasks, kVariants),
                    {.budget_s = 100, .began_s = now_s() - 97.5, .first_elapsed_s = 1, .first_cpu_s = 1});
  const std::size_t alone = schedule.index_of({.variant = 0, .setting = kAlone}).value();
  const std::size_t all = schedule.index_of({.variant = 0, .setting = kAll}).value();
  for (std::size_t task = 0; task < tasks.size(); ++task)
    for (unsigned i = 0; i < (task == all ? 5 : task == alone ? 2 : 4); ++i) schedule.count(task, 1);
  ASSERT_TRUE(schedule.run_again({0, 3}, 2));
  EXPECT_EQ(schedule.targets()[alone], 4U);
  EXPECT_EQ(schedule.targets()[all], 5U);
}

// A step for which there is no time keeps no verdict waiting.
TEST(OfLittleTime, NoTimeForWhatDecides_IsNotWaitedFor) {
  const auto tasks = tasks_of(by_affinity({1, 4}), kVariants, 4, true, false);
  const double long_ago = now_s() - 100;
  for (const double budget_s : {99.0, 1e9}) {
    Schedule schedule(tasks, goals_of(tasks, kVariants),
                      {.budget_s = budget_s, .began_s = long_ago, .first_elapsed_s = 1, .first_cpu_s = 4});
    EXPECT_EQ(schedule.can_decide(), budget_s < 100);
  }
}

TEST(Examination, ProgramsThatCannotBeExamined_RefusedWithTheReason) {
  const auto why = [](std::vector<std::string> command) -> std::pair<Refusal, std::string> {
    try {
      static_cast<void>(examine(request_of(std::move(command)), quiet_caller()));
    } catch (const Refused& refused) {
      return {refused.why(), refused.detail()};
    }
    ADD_FAILURE() << "was examined";
    return {};
  };
  EXPECT_EQ(why({"/nonexistent/program"}).first, Refusal::kNotExecutable);
  EXPECT_EQ(why({"/bin/sh", "-c", "exit 3"}), std::pair(Refusal::kFails, std::string("exit code 3")));
}

}  // namespace
}  // namespace freehold::doctor
