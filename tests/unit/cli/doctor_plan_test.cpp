// What of an experiment fits into its time, and where and how each part of it is run.
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/doctor/placement.hpp"
#include "cli/doctor/plan.hpp"
#include "cli/doctor/throughput.hpp"
#include "cli/support/failure.hpp"

namespace freehold::cli::doctor {
namespace {
using freehold::doctor::Knob;
using freehold::doctor::Setting;
using freehold::doctor::Treatment;
using freehold::doctor::Variant;

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
  // system, freehold and jemalloc in three settings; arenas and padded on all CPUs; copies; two recordings.
  EXPECT_EQ(tasks_.size(), 3u * 3 + 2 + 1 + 2);
  for (const Task& task : tasks_) {
    const bool has_goal = std::ranges::any_of(goals_, [&](const Goal& goal) { return tasks_[goal.task] == task; });
    EXPECT_TRUE(has_goal) << task.variant << ' ' << task.setting.cpus;
  }
  std::vector<Task> different;
  for (const Task& task : tasks_)
    if (std::ranges::find(different, task) == different.end()) different.push_back(task);
  EXPECT_EQ(different.size(), tasks_.size());
}

TEST_F(Plan, NoTime_TheProgramAsItIsAtBothEndsAllTheSame) {
  EXPECT_EQ(runs({.variant = 0, .setting = kAll}, 0), 1u);
  EXPECT_EQ(runs({.variant = 0, .setting = kAlone}, 0), 1u);
  EXPECT_EQ(total(0), 2);
}

TEST_F(Plan, LittleTime_GoesToWhatMattersMost) {
  EXPECT_EQ(runs({.variant = 3, .setting = kAll}, 5), 1u);
  EXPECT_EQ(runs({.variant = 3, .setting = kAlone}, 5), 1u);
  EXPECT_EQ(runs({.variant = 0, .setting = kAll, .recording = true}, 5), 1u);
  EXPECT_EQ(runs({.variant = 4, .setting = kAll}, 5), 0u);
  // Three rounds at both ends before a peer's first.
  EXPECT_EQ(runs({.variant = 4, .setting = kAll}, 18), 0u);
  EXPECT_EQ(runs({.variant = 0, .setting = kAll}, 18), 3u);
  EXPECT_EQ(runs({.variant = 3, .setting = kAlone}, 18), 3u);
  EXPECT_EQ(runs({.variant = 0, .setting = kCopies}, 18), 1u);
}

TEST_F(Plan, AnyTime_IsNeverExceeded) {
  for (double seconds = 2; seconds < 150; seconds += 1) EXPECT_LE(total(seconds), seconds);
}

TEST_F(Plan, PlentyOfTime_NineRoundsAndNoMore) {
  EXPECT_EQ(runs({.variant = 0, .setting = kAll}, 1e9), kMostRounds);
  EXPECT_EQ(runs({.variant = 4, .setting = {.threads = 0, .cpus = 2}}, 1e9), kMostRounds);
  EXPECT_EQ(runs({.variant = 0, .setting = kAll, .recording = true}, 1e9), 1u);
}

// A program of five seconds on two CPUs that scales: everything that a verdict needs within the default budget.
TEST_F(Plan, FiveSeconds_DefaultBudgetSufficesForAVerdict) {
  const std::vector<unsigned> widths{1, 2};
  const auto tasks = tasks_of(by_affinity(widths), kVariants, 2, true, false);
  const auto goals = goals_of(tasks, kVariants);
  std::vector<double> costs;
  for (const Task& task : tasks) costs.push_back((task.setting.cpus == 2 ? 5 : 10) * (task.recording ? 1.3 : 1));
  const auto targets = targets_of(goals, std::vector<unsigned>(tasks.size()), costs, 100);
  const auto runs_of = [&](const Task& task) {
    return targets[static_cast<std::size_t>(std::ranges::find(tasks, task) - tasks.begin())];
  };
  const Setting alone{.threads = 0, .cpus = 1}, all{.threads = 0, .cpus = 2};
  for (const std::size_t variant : {0u, 3u}) {
    EXPECT_EQ(runs_of({.variant = variant, .setting = all}), 3u);
    EXPECT_GE(runs_of({.variant = variant, .setting = alone}), 2u);
  }
  EXPECT_GE(runs_of({.variant = 0, .setting = {.threads = 0, .cpus = 1, .copies = 2}}), 1u);
  EXPECT_EQ(runs_of({.variant = 0, .setting = all, .recording = true}), 1u);
}

TEST_F(Plan, Rounds_InsteadOfABudget) {
  const auto goals = goals_of(tasks_, 2);
  const auto targets = targets_of(goals, std::vector<unsigned>(tasks_.size()), std::vector<double>(tasks_.size(), 1e9), -1);
  for (std::size_t i = 0; i < tasks_.size(); ++i) EXPECT_EQ(targets[i], tasks_[i].recording ? 1u : 2u);
}

TEST(PlanOfServer, HasNoCopies) {
  Settings settings = by_affinity({1, 2});
  settings.server.load = "true";
  for (const Task& task : tasks_of(settings, kVariants, 2, true, false)) EXPECT_EQ(task.setting.copies, 1u);
}

TEST(Placement, Argument_EveryMarkIsTheNumber) {
  Settings settings = by_affinity({1, 2});
  settings.knob = Knob::kArgument;
  settings.command = {"./prog", "-t", "{n}", "--pool={n}x{n}"};
  const auto command = command_of(settings, "/bin/prog", {.threads = 12, .cpus = 4});
  EXPECT_EQ(command.file, "/bin/prog");
  EXPECT_EQ(command.arguments, (std::vector<std::string>{"./prog", "-t", "12", "--pool=12x12"}));
}

TEST(Placement, Affinity_CopiesHaveCpusOfTheirOwn) {
  const std::vector<unsigned> cpus{0, 2, 1, 3};
  const Settings settings = by_affinity({1, 2, 4});
  EXPECT_TRUE(places_of(settings, kVariants[0], kAll, cpus).front().cpus.empty()) << "all CPUs: the mask stays as it is";
  EXPECT_EQ(places_of(settings, kVariants[0], {.threads = 0, .cpus = 2}, cpus).front().cpus, (std::vector<unsigned>{0, 2}));
  const auto copies = places_of(settings, kVariants[0], kCopies, cpus);
  ASSERT_EQ(copies.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(copies[i].cpus, std::vector<unsigned>{cpus[i]});
}

TEST(Placement, Environment_ThreadsAndTreatmentBoth) {
  Settings settings = by_affinity({1, 2});
  settings.knob = Knob::kEnvironment;
  settings.knob_text = "OMP_NUM_THREADS";
  Variant arenas = kVariants[1];
  arenas.environment = {{"MALLOC_ARENA_MAX", "4"}};
  const auto place = places_of(settings, arenas, {.threads = 2, .cpus = 4}, {0, 1, 2, 3}).front();
  EXPECT_EQ(place.environment,
            (std::vector<std::pair<std::string, std::string>>{{"MALLOC_ARENA_MAX", "4"}, {"OMP_NUM_THREADS", "2"}}));
}

TEST(Placement, Repetitions_AreLinesOfShell) {
  ::unsetenv("LD_PRELOAD");
  Diagnosis diagnosis;
  diagnosis.settings = by_affinity({1, 2});
  diagnosis.settings.command = {"./prog", "two words"};
  diagnosis.settings.input = "in put";
  diagnosis.experiment.variants = kVariants;
  diagnosis.experiment.cells.push_back({.variant = 3, .setting = {.threads = 0, .cpus = 1}, .trials = {}, .failure = {}});
  diagnosis.experiment.cells.push_back(
      {.variant = 0, .setting = {.threads = 0, .cpus = 1, .copies = 2}, .trials = {}, .failure = {}});
  const auto repetitions = repetitions_of(diagnosis, {4, 5});
  ASSERT_EQ(repetitions.size(), 2u);
  EXPECT_EQ(repetitions[0].what, "freehold, 1 CPU");
  EXPECT_EQ(repetitions[0].shell, "env LD_PRELOAD=/freehold.so taskset -c 4 ./prog 'two words' < 'in put'");
  EXPECT_EQ(repetitions[1].shell,
            "taskset -c 4 ./prog 'two words' < 'in put' & taskset -c 5 ./prog 'two words' < 'in put' & wait");
}

TEST(Throughput, FirstMatch_TheGroupIsTheNumber) {
  const Throughput rate("rate: ([0-9.,]+)/s");
  EXPECT_EQ(rate.find("started\nrate: 1,234.5/s\nrate: 7/s\n"), 1234.5);
  EXPECT_EQ(rate.find("rate: 0/s\n"), std::nullopt);
  EXPECT_EQ(rate.find("no rate\n"), std::nullopt);
  EXPECT_EQ(rate.find(std::string(1 << 20, 'x')), std::nullopt);
}

TEST(Throughput, BadExpression_IsRefused) {
  EXPECT_THROW(Throughput("(unclosed"), Failure);
  EXPECT_THROW(Throughput("no group"), Failure);
}

TEST(DoctorPlan, Delays_OnAllCpusAndOnlyWithARecording) {
  const auto delays = [](bool record) {
    const auto tasks = tasks_of(by_affinity({1, 2}), kVariants, 2, record, true);
    for (const Task& task : tasks) EXPECT_TRUE(task.delay_ns == 0 || task.setting.cpus == 2U);
    return std::ranges::count_if(tasks, [](const Task& task) { return task.delay_ns > 0; });
  };
  EXPECT_GE(delays(true), 2);
  EXPECT_EQ(delays(false), 0) << "what a call takes is not known";
}

}  // namespace
}  // namespace freehold::cli::doctor
