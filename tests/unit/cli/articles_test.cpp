// SPDX-License-Identifier: MIT
// Verdicts on the articles' claims, from results that are made by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/articles/findings.hpp"
#include "cli/articles/results_json.hpp"
#include "cli/articles/sets.hpp"
#include "cli/articles/table.hpp"
#include "tests/unit/cli/articles_support.hpp"

namespace freehold::cli::articles {
namespace {

const Claim& claim_of(const Findings& findings, const std::string& id) {
  const auto found = std::ranges::find(findings.claims, id, &Claim::id);
  if (found == findings.claims.end()) throw std::runtime_error("no claim " + id);
  return *found;
}

// ---- sets

Verdict verdict_on(const Sets& ratio, double threshold, bool at_least, unsigned cpus = 2) {
  std::vector<Claim> all;
  Claims claims(1, cpus, all);
  const Claims::Words words{"id", "statement", "figure", "limits", 2};
  if (at_least)
    claims.at_least(words, ratio, threshold);
  else
    claims.at_most(words, ratio, threshold);
  return all.front().verdict;
}

TEST(ArticlesClaims, Verdict_TwoThirdsOfTheSetsMustAgree) {
  EXPECT_EQ(verdict_on({2.0, 2.0, 2.0}, 1.5, true), Verdict::kReproduced);
  EXPECT_EQ(verdict_on({2.0, 2.0, 2.0}, 1.5, false), Verdict::kRefuted);
  EXPECT_EQ(verdict_on({1.0, 1.0, 2.0}, 1.5, true), Verdict::kRefuted);
  EXPECT_EQ(verdict_on({1.0, 1.0, 2.0, 2.0}, 1.5, true), Verdict::kUndecided);
  EXPECT_EQ(verdict_on({std::nullopt, std::nullopt}, 1.5, true), Verdict::kNotMeasured);
  EXPECT_EQ(verdict_on({2.0}, 1.5, true, 1), Verdict::kNotTestable);
}

// ---- findings

TEST(ArticlesFindings, ResultsAsInTheArticles_EveryClaimReproduced) {
  const Findings findings = findings_of(results_with(as_in_the_articles()));
  std::set<std::pair<std::uint32_t, std::string>> ids;
  for (const Claim& claim : findings.claims) {
    EXPECT_TRUE(ids.emplace(claim.article, claim.id).second) << claim.id;
    EXPECT_FALSE(claim.limits.empty()) << claim.id;
    if (claim.verdict == Verdict::kNotTestable || claim.id == "users-contend") continue;
    EXPECT_EQ(claim.verdict, Verdict::kReproduced) << claim.id << ' ' << claim.figure << ' ' << claim.ratio.value_or(-1);
    EXPECT_FALSE(claim.figure.empty()) << claim.id;
  }
  EXPECT_GE(findings.claims.size(), 9u + 15 + 12);
}

// Every figure the same: nothing is faster than anything, and nobody waits.
TEST(ArticlesFindings, AllEqual_WhatClaimsADifferenceRefuted) {
  const Findings findings = findings_of(results_with(Figures{}));
  for (const char* id :
       {"array-is-faster", "more-threads-gain-more", "thread-contends-more", "default-sinks", "pollution-slows-s2",
        "atomics-cost-alone", "create", "set", "wheel-gains", "intrusive", "heap-contends"})
    EXPECT_EQ(claim_of(findings, id).verdict, Verdict::kRefuted) << id;
  for (const char* id : {"processor-not-faster", "no-more-than-cpus-8", "stable-counts", "s5-constant", "private-does-not"})
    EXPECT_EQ(claim_of(findings, id).verdict, Verdict::kReproduced) << id;
}

TEST(ArticlesFindings, Interrupted_WhatIsMissingIsNotMeasured) {
  Results results = results_with(as_in_the_articles());
  results.complete = false;
  results.timers.reset();
  for (pools::Series& series : results.crc->series) series.samples.clear();
  const Findings findings = findings_of(results);
  for (const Claim& claim : findings.claims) {
    EXPECT_NE(claim.article, 3u);
    if (claim.article != 1) continue;
    EXPECT_TRUE(claim.verdict == Verdict::kNotMeasured || claim.verdict == Verdict::kNotTestable) << claim.id;
  }
  EXPECT_NE(table_of(results, findings).find("Interrupted"), std::string::npos);
}

TEST(ArticlesJson, ClaimsAndTables_AreAllThere) {
  const Results results = results_with(as_in_the_articles());
  const Findings findings = findings_of(results);
  const nlohmann::ordered_json json = results_json(results, findings);
  EXPECT_EQ(json.at("format"), "freehold-articles");
  ASSERT_EQ(json.at("claims").size(), findings.claims.size());
  for (const auto& claim : json.at("claims")) EXPECT_EQ(claim.at("ratio").is_null(), claim.at("threshold").is_null());
  for (const auto& table : json.at("tables")) {
    for (const auto& row : table.at("rows")) EXPECT_LE(row.size(), table.at("columns").size()) << table.at("title");
  }
  for (const Claim& claim : findings.claims) EXPECT_NE(table_of(results, findings).find(claim.statement), std::string::npos);
}

}  // namespace
}  // namespace freehold::cli::articles
