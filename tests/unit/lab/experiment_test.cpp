// SPDX-License-Identifier: MIT
// The frame that pools, timers and scale share: the loop over the sets, jobs as words, candidates by name, notes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "lab/experiment/candidates.hpp"
#include "lab/experiment/job_words.hpp"
#include "lab/experiment/notes.hpp"
#include "lab/experiment/run.hpp"

namespace freehold::cli {
namespace {

// ---- sets

struct Report {
  int value = 0;
};
using Numbers = CellSeries<int, int>;

class Sets : public testing::Test {
 protected:
  Sets() { begin_series(series_, std::vector<int>{0, 1, 2}); }

  // Every set in ascending order; a measurement is `measure`(cell).
  bool run(std::uint32_t sets, auto measure) {
    const auto order = [this](std::uint32_t) {
      std::vector<std::size_t> all(series_.size());
      std::iota(all.begin(), all.end(), std::size_t{0});
      return all;
    };
    const auto counted = [&](const Numbers& one) -> Measured<Report> {
      ++calls_[one.cell];
      return measure(one.cell);
    };
    return measure_sets(
        sets, series_, progress_, order, [](int cell) { return std::to_string(cell); }, counted,
        [](const Report& report) { return report.value; });
  }

  Progress progress_;
  std::vector<Numbers> series_;
  std::map<int, int> calls_;
};

TEST_F(Sets, EveryCell_OnceInEverySet) {
  EXPECT_TRUE(run(3, [](int cell) { return Report{10 * cell}; }));
  for (const Numbers& one : series_) {
    EXPECT_EQ(calls_[one.cell], 3);
    EXPECT_EQ(one.samples, (std::vector<std::optional<int>>(3, 10 * one.cell)));
    EXPECT_EQ(one.failure, "");
  }
}

TEST_F(Sets, Interrupted_EndsAtOnceAndKeepsTheRest) {
  int left = 4;
  EXPECT_FALSE(run(3, [&](int cell) -> Measured<Report> {
    if (left-- == 0) return Interrupted{};
    return Report{cell};
  }));
  EXPECT_EQ(calls_, (std::map<int, int>{{0, 2}, {1, 2}, {2, 1}}));
  EXPECT_EQ(series_[0].samples.size(), 2u);
  EXPECT_EQ(series_[1].samples.size(), 1u);
  EXPECT_EQ(series_[2].samples.size(), 1u);
}

// ---- jobs

enum class Color { kRed, kBlue };
std::string_view name_of(Color color) { return color == Color::kRed ? "red" : "blue"; }

TEST(JobWords, EveryKindOfField_ComesBack) {
  const std::vector<std::string> words =
      job_words(std::string("x y"), Color::kBlue, std::uint32_t{7}, std::uint64_t{5'000'000'000}, true, false);
  EXPECT_EQ(words, (std::vector<std::string>{"x y", "blue", "7", "5000000000", "1", "0"}));
  JobWords next("a-worker", words, 6);
  EXPECT_EQ(next.text(), "x y");
  EXPECT_EQ(next.named([](std::string_view name) { return name == "blue" ? std::optional(Color::kBlue) : std::nullopt; }),
            Color::kBlue);
  EXPECT_EQ(next.number(), 7u);
  EXPECT_EQ(next.large_number(), 5'000'000'000u);
  EXPECT_TRUE(next.flag());
  EXPECT_FALSE(next.flag());
}

// ---- candidates

struct Fruit {
  std::string name;
  std::string source;
};
const std::vector<Fruit> kFruit{{"apple", "a tree"}, {"berry", "a bush"}, {"cherry", "a tree"}};

TEST(Candidates, Parsed_InTheOrderOfTheTablesEachOnce) {
  const auto chosen = parse_candidates(kFruit, "--fruit", "eat", "cherry,apple,cherry");
  EXPECT_EQ(chosen, (std::vector<const Fruit*>{&kFruit[0], &kFruit[2]}));
  EXPECT_EQ(pointers_to(kFruit).size(), 3u);
  EXPECT_EQ(find_by_name(kFruit, "plum"), nullptr);
}

TEST(Candidates, UnknownName_RefusedWithTheWayOut) {
  try {
    (void)parse_candidates(kFruit, "--fruit", "eat", "plum");
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.what(), "--fruit: there is no 'plum'; see freehold eat --list");
    EXPECT_EQ(failure.exit_code(), kExitRefused);
  }
}

// ---- notes

TEST(SpreadNote, OnlyWideMedians_AreCounted) {
  SpreadNote note(0.25);
  std::vector<std::string> notes;
  note.add(std::vector<double>{10, 11, 10});
  note.add({});
  note.write_to(notes);
  EXPECT_TRUE(notes.empty());
  note.add(std::vector<double>{10, 15, 10});
  note.write_to(notes);
  EXPECT_EQ(note.medians(), 2u);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0], "1 of 2 medians come from sets that differ by more than 25% (the worst by 50%).");
}

}  // namespace
}  // namespace freehold::cli
