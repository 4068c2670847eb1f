// SPDX-License-Identifier: MIT
#include "lab/scale/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "cli/support/failure.hpp"
#include "lab/scale/experiment.hpp"
#include "lab/scale/worker.hpp"

namespace freehold::cli::scale {
namespace {

using Counts = std::vector<std::uint32_t>;

Settings two_allocators() {
  Settings settings;
  settings.subjects = subjects_of({{"system", ""}, {"freehold", "/l.so"}});
  return settings;
}

TEST(ScalePlan, WorkersList_SortedOnceEachWithOne) {
  EXPECT_EQ(parse_workers("6,2,2,3"), (Counts{1, 2, 3, 6}));
  EXPECT_EQ(parse_workers("1"), (Counts{1}));
  EXPECT_EQ(parse_workers("1024"), (Counts{1, 1024}));
}

TEST(ScalePlan, WorkersThatAreNoCounts_Refused) {
  for (const char* text : {"", "0", "-1", "2,", ",2", "two", "1025", "2x", "99999999999", "1 2", "+2", "2.5"}) {
    EXPECT_THROW((void)parse_workers(text), Failure) << text;
  }
}

TEST(ScalePlan, Cells_EveryCombinationOnce) {
  const auto cells = cells_of(two_allocators());
  // 4 workloads, 2 modes, 2 allocators, 5 counts; isolation: 5 subjects, 5 counts; handover: 5 subjects, pairs of 2, 4, 6.
  EXPECT_EQ(cells.size(), 4u * 2 * 2 * 5 + 5 * 5 + 5 * 3);
  for (const Cell& cell : cells) {
    EXPECT_EQ(std::ranges::count(cells, cell), 1);
    if (!runs_as_processes(cell.test)) {
      EXPECT_EQ(cell.mode, Mode::kThreads);
    }
  }
}

TEST(ScalePlan, Pool_OnlyWhatKeepsNothingBetweenTasks) {
  Settings settings = two_allocators();
  settings.modes = {Mode::kPool};
  settings.tests.assign(kWorkloads.begin(), kWorkloads.end());
  for (const Cell& cell : cells_of(settings)) {
    EXPECT_TRUE(runs_as_processes(cell.test));
    EXPECT_NE(cell.test, Workload::kMemory);
  }
  EXPECT_EQ(cells_of(settings).size(), 5u * 2 * 5);  // compute, allocate, mixed, object, locked
}

TEST(ScalePlan, Shares_AddUpAndDifferByOneAtMost) {
  for (std::uint32_t workers = 1; workers <= 24; ++workers) {
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < workers; ++i) {
      sum += share_of(24, workers, i);
      EXPECT_LE(share_of(24, workers, i), share_of(24, workers, 0));
      EXPECT_GE(share_of(24, workers, i) + 1, share_of(24, workers, 0));
    }
    EXPECT_EQ(sum, 24u);
  }
}

TEST(ScalePlan, Operations_DoNotDependOnTheWorkers) {
  for (const Workload test : kWorkloads) {
    Job job{.test = test, .mode = Mode::kThreads, .source = Source::kMalloc, .workers = 2, .iterations = 24, .units = 7};
    const auto operations = operations_of(job);
    EXPECT_GT(operations, 0u);
    job.workers = 6;
    EXPECT_EQ(operations_of(job), operations);
    job.units = 14;
    EXPECT_EQ(operations_of(job), 2 * operations);
  }
}

TEST(ScalePlan, Words_NameTheWholeJob) {
  const Job job{.test = Workload::kMixed,
                .mode = Mode::kProcesses,
                .source = Source::kOwnerMutex,
                .workers = 3,
                .iterations = 24,
                .units = 5'000'000'000,
                .one_cpu = true};
  std::vector<std::string> words = words_of(job);
  EXPECT_EQ(words, (std::vector<std::string>{"mixed", "processes", "owner-mutex", "3", "24", "5000000000", "1"}));
  EXPECT_EQ(job_of(words), job);
  words[0] = "dance";
  EXPECT_THROW((void)job_of(words), std::runtime_error);
  words.pop_back();
  EXPECT_THROW((void)job_of(words), std::runtime_error);
}

}  // namespace
}  // namespace freehold::cli::scale
