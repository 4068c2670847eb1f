// SPDX-License-Identifier: MIT
// Measurements beside other programs: how busy the machine was is noted, they are repeated, then left out of verdicts.
#include <filesystem>

#include "lab/articles/experiment.hpp"
#include "lab/experiment/claim.hpp"
#include "lab/experiment/run.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/lab/scale_support.hpp"
#include "tests/unit/lab/timers_support.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/output_file.hpp"

namespace freehold::lab {
namespace {

TEST(OthersShare, AShortMeasurement_IsJudgedByAWindow) {
  OthersShare::Mark now;
  OthersShare others(2, [&] { return now; });
  const auto measured = [&](double seconds, double others_s) {
    others.begin();
    now.now_s += seconds;
    now.others_s += others_s;
    return others.end();
  };
  EXPECT_NEAR(measured(1, 0.5), 0.25, 1e-9);
  EXPECT_NEAR(measured(1, 0), 0, 1e-9);
  EXPECT_NEAR(measured(0.1, 0.02), 0.02 / 1.1 / 2, 1e-9);  // one step of the system's clock on each CPU is no busy machine
  for (int i = 0; i < 4; ++i) (void)measured(0.1, 0.1);
  EXPECT_NEAR(measured(0.1, 0.1), 0.5, 1e-9);
  EXPECT_NEAR(measured(1, 0), 0, 1e-9);  // what is past is past
}

// Others are there during the calls that `is_busy` names.
scale::Results measured_beside(std::uint32_t sets, const std::function<bool(std::size_t call, std::size_t job)>& is_busy,
                               std::size_t& calls) {
  scale::Settings settings;
  settings.subjects = scale::subjects_of({{"system", ""}});
  settings.tests = {scale::Workload::kCompute};
  settings.modes = {Mode::kThreads};
  scale::Results results(settings, scale::jobs_of(settings));
  Progress progress;
  const auto measure = [&](const scale::Job& job, std::uint32_t, bool) -> Measured<scale::Report> {
    scale::Report report = scale::report_of(1e6, 1);
    report.others = is_busy(calls++, job.workers) ? 0.5 : 0.01;
    return report;
  };
  EXPECT_TRUE(measure_sets(sets, results.series, progress, measure));
  return results;
}

TEST(MeasureSets, Disturbed_RepeatedThenMarked) {
  const std::size_t jobs = 5;
  std::size_t calls = 0;
  const auto disturbed = [](const scale::Results& results) {
    std::size_t count = 0;
    for (const auto& series : results.series)
      count += static_cast<std::size_t>(std::ranges::count_if(series.samples, is_disturbed<scale::Report>));
    return count;
  };
  EXPECT_EQ(disturbed(measured_beside(3, [](auto, auto) { return false; }, calls)), 0u);
  EXPECT_EQ(calls, 3 * jobs);
  calls = 0;  // a burst
  EXPECT_EQ(disturbed(measured_beside(3, [](auto call, auto) { return call == 2 || call == 3; }, calls)), 0u);
  EXPECT_EQ(calls, 3 * jobs + 2);
  calls = 0;  // one that repeats cannot help
  EXPECT_EQ(disturbed(measured_beside(3, [](auto, auto workers) { return workers == 4; }, calls)), 3u);
  EXPECT_EQ(calls, 3 * jobs + 2);
  calls = 0;  // it stays so
  const scale::Results busy = measured_beside(3, [](auto, auto) { return true; }, calls);
  EXPECT_EQ(disturbed(busy), 3 * jobs);
  EXPECT_EQ(calls, 3 * jobs + 2);
  EXPECT_EQ(first_notes(busy).size(), 1u);
  EXPECT_EQ(median_of(scale::times_of(&undisturbed(busy).series[0])), std::nullopt);
}

TEST(Limits, FewSets_AreWidened) {
  const auto limits = [](const std::vector<double>& ratios) {
    const Range range = limits_of(ratios);
    return std::pair(range.least, range.greatest);
  };
  EXPECT_EQ(limits({3}), std::pair(2.0, 4.5));
  EXPECT_EQ(limits({2, 1, 1.5, 1.2, 1.1}), std::pair(1.0, 2.0));
  EXPECT_LT(limits({2, 2.1, 2.2}).first, 1.81);
  EXPECT_LT(limits({2, 2.1}).first, limits({2, 2.1, 2.1}).first);
  EXPECT_EQ(limits({0, 0, 0}), std::pair(0.0, 0.0));
}

TEST(Claim, Judge_DecidesByWhatIsShown) {
  Claim claim;
  claim.judge({1.0521, 1.0549, 1.05, 1.051, 1.053}, 1.05, false);
  EXPECT_EQ(ratio_text(claim), "1.05 (1.05–1.05 by 5 sets), reproduced from 1.05 down");
  EXPECT_EQ(claim.outcome, Outcome::kReproduced);
}

TEST(TimersTargets, EqualToTheThreshold_Reached) {
  const timers::Results results = timers::results_with([](const timers::Job& job, std::size_t) {
    return job.load == timers::Load::kHeap ? 105.04 : 100.0;  // 1.0504
  });
  for (const Claim& target : timers::targets_of(results)) {
    if (target.statement.find("heap threads") == std::string::npos) continue;
    EXPECT_EQ(target.outcome, Outcome::kReproduced) << target.statement << ' ' << ratio_text(target);
  }
}

TEST(ScaleVerdict, TheFigureIsTheOneThatDecides) {
  // Two threads scale as computing does; four and six do not.
  const scale::Results results = scale::results_with([](const scale::Job& job, std::size_t set) {
    const bool lists = job.test == scale::Workload::kAllocate && job.workers > 2;
    return (lists ? 0.9 : 0.2 / std::min(job.workers, 2u)) * (1 + 0.001 * static_cast<double>(set));
  });
  const Claim claim = scale::verdict_of(results).claims[0];
  EXPECT_NE(claim.figure.find("2 threads build and free lists 2.00 times"), std::string::npos) << claim.figure;
  EXPECT_NEAR(claim.ratio->median, 1, 0.01);
  EXPECT_EQ(claim.outcome, Outcome::kRefuted);
}

TEST(ScaleVerdict, BesideOthers_DisturbedSetsAreLeftOut) {
  scale::Results results = scale::results_with(scale::as_in_the_article, {1, 2, 4}, 5);
  const auto disturb = [&](std::size_t sets) {
    for (auto& series : results.series)
      for (std::size_t set = 0; set < sets; ++set) {
        series.samples[set]->elapsed_ns *= series.job.test == scale::Workload::kAllocate ? 1 : 3;
        series.samples[set]->others = 0.4;
      }
  };
  disturb(3);
  const Claim some = scale::verdict_of(results).claims[0];
  EXPECT_EQ(some.outcome, Outcome::kReproduced);
  EXPECT_EQ(some.sets, 2u);
  disturb(5);
  const Claim none = scale::verdict_of(results).claims[0];
  EXPECT_EQ(none.outcome, Outcome::kUndecided);
  EXPECT_TRUE(none.disturbed);
  EXPECT_EQ(none.sets, 5u);
}

// Runs beside others on two CPUs, recorded: the same claim asked again and again. The last run of the second is a stored one
// of a quieter machine, which noted no share and is taken as undisturbed.
struct Asked {
  const char* claim;
  double threshold;
  bool at_least;
  std::vector<std::vector<double>> ratios;  // ratios of each run, by set
  std::vector<double> others;               // beside each run
};
const Asked kAsked[] = {
    {"lists of threads do not scale as computing does (allocate / compute, two threads)",
     0.8,
     false,
     {{0.720, 0.823, 0.931}, {1.454, 0.822, 0.995}, {0.677, 0.842, 0.965}, {0.987, 1.152, 1.069}, {1.360, 0.669, 0.329}},
     {0.84, 0.87, 0.88, 0.88, 0.86}},
    {"the queue waits for all who use the program's heap (sleeps in a thousand timers)",
     1,
     true,
     {{0, 0.05, 0.15},
      {0.15, 0.10, 0.05},
      {0.10, 0.10, 0.05},
      {0.20, 0, 0.05},
      {0.15, 0.15, 0.20},
      {129.36, 118.39, 134.67}},
     {0.88, 0.81, 0.88, 0.83, 0.87, 0}},
    {"the same with the containers on a private heap", 1, true, {{0}, {17.5}, {1.70}}, {0.50, 0.50, 0.50}},
};

// The different firm verdicts.
std::size_t verdicts(const Asked& asked, bool sees_others, bool by_single_sets) {
  std::set<Outcome> firm;
  const auto judge = [&](const std::vector<double>& ratios, double others) {
    ExperimentResults<int, scale::Job, scale::Report> results(0, {{}});
    for (const double ratio : ratios) {
      scale::Report report = scale::report_of(1e6 * ratio, 1);
      report.others = sees_others ? others : 0;
      results.series[0].samples.emplace_back(report);
    }
    const Outcome outcome =
        judge_undisturbed(results,
                          [&](const auto& some) {
                            std::vector<Claim> claims(1);
                            claims[0].judge(quotient(scale::times_of(&some.series[0]), Sets(ratios.size(), 1e-3)),
                                            asked.threshold, asked.at_least);
                            return claims;
                          })[0]
            .outcome;
    if (outcome != Outcome::kUndecided) firm.insert(outcome);
  };
  for (std::size_t run = 0; run < asked.ratios.size(); ++run) {
    if (!by_single_sets) judge(asked.ratios[run], asked.others[run]);
    for (const double ratio : asked.ratios[run]) {
      if (by_single_sets) judge({ratio}, asked.others[run]);
    }
  }
  return firm.size();
}

TEST(BusyMachine, TheSameClaimAsked_NeverTwoOppositeVerdicts) {
  for (const Asked& asked : kAsked) {
    // Each contradicts itself where the share of other programs is left out.
    EXPECT_EQ(verdicts(asked, false, true), 2u) << asked.claim;
    for (const bool by_single_sets : {false, true}) EXPECT_LE(verdicts(asked, true, by_single_sets), 1u) << asked.claim;
  }
}

TEST(SampleStore, OpenedAgain_HasWhatWasFinished) {
  const TemporaryFolder folder("store");
  const std::string file = folder.path() / "sets";
  const scale::Report report = scale::report_of(12345, 2);
  {
    SampleStore store(file);
    store.add("a", report);
    store.add("b", report);
  }
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 5);  // killed while it wrote
  {
    SampleStore again(file);
    EXPECT_EQ(again.find<scale::Report>("a")->elapsed_ns, 12345u);
    EXPECT_FALSE(again.find<scale::Report>("b"));
    EXPECT_FALSE(again.find<int>("a"));
    again.add("c", report);
  }
  EXPECT_TRUE(SampleStore(file).find<scale::Report>("c"));
  write_file(file, "something else\n");
  EXPECT_THROW(SampleStore{file}, Failure);
}

TEST(Articles, Full_HasTheArticlesCounts) {
  const articles::Results plan = articles::plan_of({.articles = {1, 2, 3}, .repeat = 0, .full = true});
  EXPECT_EQ(counts_of(plan, 1), "1000000 writes of each writer, 4000000 reads of each reader; medians of 50 sets");
  EXPECT_EQ(counts_of(plan, 2), "1000000 blocks of 12 bytes for each of 8 threads; medians of 5 sets");
  EXPECT_EQ(counts_of(plan, 3), "100000 timers, 65536 that are cancelled; medians of 5 sets");
  EXPECT_GT(extent_of(plan).seconds, 3600);
  const articles::Results quick = articles::plan_of({.articles = {3}, .repeat = 1, .quick = true});
  EXPECT_EQ(counts_of(quick, 3), "10000 timers, 10000 that are cancelled; one set");
}

}  // namespace
}  // namespace freehold::lab
