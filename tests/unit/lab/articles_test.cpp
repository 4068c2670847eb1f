// SPDX-License-Identifier: MIT
// Verdicts on the articles' claims, from results that are made by hand.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lab/articles/findings.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/lab/articles_support.hpp"

namespace freehold::lab::articles {
namespace {

const Claim& claim_of(const Findings& findings, const std::string& id) {
  const auto found = std::ranges::find(findings.claims, id, &Claim::id);
  if (found == findings.claims.end()) throw std::runtime_error("no claim " + id);
  return *found;
}

// ---- sets

Claim claim_on(const Sets& ratio, double threshold, bool at_least, unsigned cpus = 2) {
  std::vector<Claim> all;
  Claims claims(1, cpus, all);
  const Claims::Words words{"id", "statement", "figure", "limits", 2};
  if (at_least)
    claims.at_least(words, ratio, threshold);
  else
    claims.at_most(words, ratio, threshold);
  return all.front();
}
Outcome outcome_on(const Sets& ratio, double threshold, bool at_least, unsigned cpus = 2) {
  return claim_on(ratio, threshold, at_least, cpus).outcome;
}

TEST(ArticlesClaims, Verdict_TheWholeRangeMustLieOnOneSide) {
  EXPECT_EQ(outcome_on({2.0, 2.0, 2.0}, 1.5, true), Outcome::kReproduced);
  EXPECT_EQ(outcome_on({2.0, 2.0, 2.0}, 1.5, false), Outcome::kRefuted);
  EXPECT_EQ(outcome_on({1.0, 1.0, 2.0}, 1.5, true), Outcome::kUndecided);
  EXPECT_EQ(outcome_on({1.21, 0.91, 1.28}, 1.1, false), Outcome::kUndecided);
  EXPECT_EQ(outcome_on({1.2, 1.2}, 1.2, false), Outcome::kReproduced);
  EXPECT_EQ(outcome_on({1.2, 1.2}, 1.2, true), Outcome::kReproduced);
  EXPECT_EQ(outcome_on({1.6}, 1.5, true), Outcome::kUndecided);  // one set has no range
  EXPECT_EQ(outcome_on({3.2}, 1.5, true), Outcome::kReproduced);
  EXPECT_EQ(outcome_on({std::nullopt, std::nullopt}, 1.5, true), Outcome::kNotMeasured);
  EXPECT_EQ(outcome_on({2.0}, 1.5, true, 1), Outcome::kNotTestable);
}

// Two figures of some sets, and the claim that their ratio reaches a threshold: a firm verdict fits all that is printed, and
// the ratio of the printed medians.
TEST(ArticlesClaims, Verdict_NeverContradictsItsFigures) {
  std::mt19937 random(11);
  std::map<Outcome, int> seen;
  for (int i = 0; i < 20'000; ++i) {
    const double threshold = std::array{0.8, 1.0, 1.1, 1.5, 2.0}[random() % 5], bias = std::exp2(random() % 5 - 2.0);
    std::lognormal_distribution<double> noise(0, std::array{0.01, 0.2, 1.0}[random() % 3]);
    Sets a(1 + random() % 7), b(a.size());
    for (std::size_t set = 0; set < a.size(); ++set) {
      b[set] = 100 * noise(random);
      a[set] = threshold * bias * 100 * noise(random);
    }
    const bool at_least = random() % 2 == 0;
    const Claim claim = claim_on(quotient(a, b), threshold, at_least);
    const auto holds = [&](double ratio) { return at_least ? ratio >= threshold : ratio <= threshold; };
    const auto printed = [](double value) { return std::stod(fmt::format("{:.2f}", value)); };
    const bool low = holds(printed(claim.ratio->least)), high = holds(printed(claim.ratio->greatest));
    ++seen[claim.outcome];
    if (claim.outcome == Outcome::kUndecided) {
      EXPECT_NE(low, high);
      continue;
    }
    ASSERT_EQ(low, claim.outcome == Outcome::kReproduced)
        << threshold << ' ' << claim.ratio->least << ' ' << claim.ratio->greatest;
    ASSERT_EQ(high, low) << threshold << ' ' << claim.ratio->least << ' ' << claim.ratio->greatest;
    const double of_medians = *median_of(a) / *median_of(b);
    ASSERT_GE(of_medians, claim.ratio->least - 0.006);
    ASSERT_LE(of_medians, claim.ratio->greatest + 0.006);
  }
  for (const Outcome outcome : {Outcome::kReproduced, Outcome::kRefuted, Outcome::kUndecided}) EXPECT_GT(seen[outcome], 500);
}

// ---- findings

TEST(ArticlesFindings, ResultsAsInTheArticles_EveryClaimReproduced) {
  const Findings findings = findings_of(results_with(as_in_the_articles()));
  std::set<std::pair<std::uint32_t, std::string>> ids;
  for (const Claim& claim : findings.claims) {
    EXPECT_TRUE(ids.emplace(claim.article, claim.id).second) << claim.id;
    EXPECT_FALSE(claim.limits.empty()) << claim.id;
    if (claim.outcome == Outcome::kNotTestable || claim.id == "users-contend") continue;
    if (claim.id == "bits-bottleneck") {  // a guess, which the article's own tables contradict
      EXPECT_EQ(claim.outcome, Outcome::kRefuted);
      continue;
    }
    EXPECT_EQ(claim.outcome, Outcome::kReproduced)
        << claim.id << ' ' << claim.figure << ' ' << (claim.ratio ? claim.ratio->median : -1);
    EXPECT_FALSE(claim.figure.empty()) << claim.id;
  }
  EXPECT_GE(findings.claims.size(), 10u + 18 + 12);
}

// Every figure is the same: nothing is faster than anything, and no thread waits.
TEST(ArticlesFindings, AllEqual_WhatClaimsADifferenceRefuted) {
  const Findings findings = findings_of(results_with(Figures{}));
  for (const char* id : {"array-is-faster", "more-threads-gain-more", "thread-contends-more", "default-sinks",
                         "pollution-slows-s2", "producers-and-consumers", "locks-differ", "false-sharing",
                         "pollution-slows-default", "tree-fragments-least", "lives-fragment", "atomics-cost-alone", "create",
                         "set", "untouched-containers", "wheel-gains", "intrusive", "heap-contends"})
    EXPECT_EQ(claim_of(findings, id).outcome, Outcome::kRefuted) << id;
  for (const char* id :
       {"processor-not-faster", "no-more-than-cpus-8", "pool-for-each-thread", "uniprocessor-fast", "uniprocessor-array",
        "uniprocessor-processor", "uniprocessor-contention", "s4-before-s5-in-queue", "s4-before-s5-in-queue-alone",
        "bits-bottleneck", "stable-counts", "s5-constant", "private-does-not"})
    EXPECT_EQ(claim_of(findings, id).outcome, Outcome::kReproduced) << id;
}

TEST(ArticlesFindings, FiguresOfTheArticles_AsTheirTextGivesThem) {
  const Findings findings = findings_of(results_with(as_in_the_articles()));
  const Plot& figure5 = findings.plots.front();
  EXPECT_EQ(figure5.x, (std::vector<std::uint32_t>{1, 2, 4, 8, 16, 32}));
  EXPECT_NEAR(*figure5.lines[0].values[3], 0.55, 1e-9) << "one pool, in microseconds";
  EXPECT_NEAR(*figure5.lines[1].article[2], 0.1, 1e-9) << "5 to 6 times as fast with 4";
  ASSERT_EQ(findings.bars.size(), 3u + 4) << "three tests; queue and wheel at random and ascending times";
  const auto& long_life = findings.bars[1].bars;
  ASSERT_EQ(long_life.size(), 12u);
  EXPECT_TRUE(std::ranges::is_sorted(long_life, {}, [](const Bars::Bar& bar) { return bar.value->median; }));
  EXPECT_TRUE(long_life.back().is_default);
  EXPECT_EQ(long_life[2].label, "(F) S2, lock-free");
  EXPECT_NEAR(long_life[2].value->median, 11e-9 * 8 * 200'000, 1e-9) << "seconds for all of them";
  EXPECT_EQ(long_life[2].article, 1.158107);
  const auto& queue = findings.bars[3].bars;
  ASSERT_EQ(queue.size(), 6u);
  EXPECT_NEAR(queue[0].value->median, 700 * 100'000 / 1e6, 1e-9) << "ms to create 100,000 timers";
  EXPECT_EQ(queue[3].article, 100) << "to set them, on a private heap";
  const Findings scaling = findings_of(scaling_with(as_in_the_articles(), 4));
  ASSERT_EQ(scaling.plots.size(), 3u);
  const Plot::Line& allocate = scaling.plots[0].lines[1];
  EXPECT_NEAR(*allocate.values[3], 50, 1e-9) << "four threads take twice the time";
  EXPECT_EQ(allocate.article[3], 50);
}

TEST(ArticlesFindings, Article4AsWritten_EveryClaimReproduced) {
  Results results = scaling_with(as_in_the_articles(), 4);
  results.machine.cores = 3;
  for (const Claim& claim : findings_of(results).claims)
    EXPECT_EQ(claim.outcome, Outcome::kReproduced) << claim.id << ' ' << claim.figure << ' ' << ratio_text(claim);
}

// All work takes the same time, however many do it: what claims a gain or a loss is refuted.
TEST(ArticlesFindings, Article4AllEqual_Refuted) {
  Results results = scaling_with(Figures{}, 4);
  results.machine.cores = 2;
  const Findings findings = findings_of(results);
  for (const char* id : {"compute-scales", "four-take-twice", "object-heap-faster", "untouched-object-faster",
                         "reserved-heap-faster", "hyper-threads", "worker-heap-faster", "one-cpu-mixed",
                         "one-cpu-own-memory", "one-cpu-quadratic", "process-each-ruins"})
    EXPECT_EQ(claim_of(findings, id).outcome, Outcome::kRefuted) << id;
  for (const char* id : {"one-cpu-2", "one-cpu-3", "one-cpu-memory", "table-no-bottleneck"})
    EXPECT_EQ(claim_of(findings, id).outcome, Outcome::kReproduced) << id;
}

constexpr std::array kArticle5{"isolation-faster", "handover-faster",     "one-cpu-isolation",  "one-cpu-handover",
                               "hundred-times",    "processors-speed-up", "standard-collapses", "batches"};

TEST(ArticlesFindings, Article5AsWritten_EveryClaimReproduced) {
  const Findings findings = findings_of(blocks_with(as_in_the_articles(), 4));
  for (const char* id : kArticle5)
    EXPECT_EQ(claim_of(findings, id).outcome, Outcome::kReproduced) << id << ' ' << claim_of(findings, id).figure;
  EXPECT_EQ(findings.claims.size(), kArticle5.size() + 1);  // and the seconds of 2006
}

// Every allocator takes the same, on one CPU and on all, and every curve is as straight as that of computing.
TEST(ArticlesFindings, Article5AllEqual_NothingFasterRefutedAndProcessorsStillSpeedUp) {
  Figures figures;
  figures.work = [](const auto&, const scale::Job& job, bool one_cpu) {
    return one_cpu ? 60.0 : 60.0 / std::min(job.workers, 4U);
  };
  const Findings findings = findings_of(blocks_with(figures, 4));
  for (const char* id : kArticle5)
    EXPECT_EQ(claim_of(findings, id).outcome,
              std::string_view(id) == "processors-speed-up" ? Outcome::kReproduced : Outcome::kRefuted)
        << id;
}

TEST(ArticlesFindings, Article5Table_OneCpuAndAllBesideTheArticlesSeconds) {
  const Findings findings = findings_of(blocks_with(as_in_the_articles(), 2));
  ASSERT_FALSE(findings.tables.empty());
  ASSERT_EQ(findings.tables[0].rows.size(), 4u);
  for (const auto& row : findings.tables[0].rows) EXPECT_EQ(row.size(), findings.tables[0].columns.size());
  const auto& standard = findings.tables[0].rows[0];
  EXPECT_NE(standard.at(1), standard.at(2));  // 150 ms and 1600 of the same work
  EXPECT_EQ(standard.at(3), "7.948");
}

}  // namespace
}  // namespace freehold::lab::articles
