// SPDX-License-Identifier: MIT
// The table of the verdict: the page shows it, each of its thresholds is asked for, and facts are what it asks.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "tests/doctor/made_experiment.hpp"
#include "tests/doctor/table_text.hpp"

namespace freehold::doctor {
namespace {

TEST(VerdictTable, OfThePage_IsThatOfTheCode) {
  std::ifstream file(FREEHOLD_DIAGNOSIS_PAGE);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(page.find(table_text()), std::string::npos)
      << "judge_reports --table writes what belongs into docs/verdict-table.md";
  EXPECT_NE(page.find(memory_table_text()), std::string::npos)
      << "judge_reports --table writes what belongs into docs/verdict-table.md";
}

TEST(VerdictTable, EveryThresholdAndFact_IsAskedFor) {
  std::set<Limit> limits{Limit::kWholePart};  // which tells a mix from one part
  std::set<Fact> facts;
  for (const Criterion& evidence : all_evidence()) {
    facts.insert(evidence.fact);
    if (evidence.is != Is::kKnown && evidence.is != Is::kUnknown) limits.insert(evidence.limit);
  }
  for (std::size_t i = 0; i < kLimits; ++i)
    EXPECT_TRUE(limits.contains(static_cast<Limit>(i))) << threshold_of(static_cast<Limit>(i)).reason;
  for (std::size_t i = 0; i < kFacts; ++i)
    EXPECT_TRUE(facts.contains(static_cast<Fact>(i))) << describe(static_cast<Fact>(i)).name;
  std::set<MemoryLimit> memory_limits;
  std::set<MemoryFact> memory_facts;
  for (const MemoryCriterion& evidence : all_memory_evidence()) {
    memory_facts.insert(evidence.fact);
    memory_limits.insert(evidence.limit);
  }
  for (const MemoryRow& row : memory_rows())
    if (row.part) memory_facts.insert(*row.part);
  EXPECT_EQ(memory_limits.size(), kMemoryLimits);
  EXPECT_EQ(memory_facts.size(), kMemoryFacts);
}

Facts facts_of(const Made& made, const Attribution* recorded = nullptr) {
  const Losses losses(made.experiment_, recorded);
  return facts_of(losses, gains_of(losses));
}

TEST(Facts, WhatWasNotTriedOrRecorded_IsNotKnown) {
  const Facts facts = facts_of(Made().takes(0, 1, 0.8));
  for (const Fact fact : {Fact::kPaddingSaves, Fact::kFreeholdSaves, Fact::kMachinePart, Fact::kInMalloc, Fact::kLockTime,
                          Fact::kLocksInCode, Fact::kOwnMalloc, Fact::kMemoryLeft})
    EXPECT_FALSE(facts[fact]) << describe(fact).name;
  ASSERT_TRUE(facts[Fact::kLost]);
  EXPECT_NEAR(facts[Fact::kLost]->value, 1 - 0.25 / 0.8, 0.02);
}

TEST(Facts, BesideOthers_LimitsAreWider) {
  Attribution recorded;
  Made made = Made().takes(0, 1, 0.8).treated(1, 0.8).copies(1);
  const Facts quiet = facts_of(made, &recorded), busy = facts_of(made.beside_others(0.3), &recorded);
  for (const Fact fact : {Fact::kLost, Fact::kOwnPart, Fact::kPaddingSaves, Fact::kFreeholdSaves}) {
    const auto width = [fact](const Facts& of) { return of[fact]->high - of[fact]->low; };
    EXPECT_GT(width(busy), width(quiet) + 0.05) << describe(fact).name;
  }
}

// Most of what it allocates comes from its own malloc, and the CPU time that comes with the threads is there.
TEST(Verdict, GrowsInAMallocThatNoOtherReaches_OwnMalloc) {
  Attribution recorded;
  Made made = Made().takes(0, 1, 0.8).treated(1, 0.8).copies(1);
  made.experiment_.code = {.known = true, .work_known = true, .allocator = 0.6};
  made.experiment_.own_malloc_share = 0.9;
  EXPECT_EQ(found(made.verdict(&recorded)), "own-malloc");
  made.experiment_.own_malloc_share = 0.1;
  EXPECT_NE(found(made.verdict(&recorded)), "own-malloc") << "malloc has the rest";
  made.experiment_.own_malloc_share = 0.9;
  made.experiment_.code = {.known = true, .work_known = true, .contended = 0.6};
  EXPECT_EQ(found(made.verdict(&recorded)), "own-sharing") << "threads meet elsewhere";
}

// The row that is nearest is named, and the fact that would decide it, which is tried next.
TEST(Verdict, Undecided_NamesTheFactThatIsMissing) {
  Made made = Made().takes(0, 1, 0.9).takes(3, 1, 0.9).copies(1);
  const Verdict verdict = made.verdict();
  EXPECT_EQ(found(verdict), "undecided");
  EXPECT_EQ(verdict.suspected, Cause::kOwnSharing);
  ASSERT_TRUE(verdict.missing);
  EXPECT_EQ(describe(*verdict.missing).needs, Treatment::kPadded);
  EXPECT_FALSE(verdict.experiment.empty());
}

}  // namespace
}  // namespace freehold::doctor
