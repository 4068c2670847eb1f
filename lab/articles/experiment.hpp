// SPDX-License-Identifier: MIT
// Runs the plan, one command's experiment after the other. Keeps the finished measurements when interrupted.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/support/interrupts.hpp"
#include "lab/experiment/series.hpp"
#include "lab/pools/plan.hpp"
#include "lab/pools/results.hpp"
#include "lab/scale/plan.hpp"
#include "lab/scale/results.hpp"
#include "lab/timers/plan.hpp"
#include "lab/timers/results.hpp"

namespace freehold::cli::articles {

// The measurements for the articles' claims: experiments of the other commands, each limited to the rows that a claim needs.
// There is no measuring code here.
inline constexpr std::uint32_t kFirstArticle = 1, kLastArticle = 5;

struct Choice {
  std::vector<std::uint32_t> articles{1, 2, 3, 4, 5};
  std::uint32_t repeat = 5;
  bool quick = false;  // a tenth of the work, one set unless `repeat` is given
};

// The parts that no chosen article needs are empty.
struct Plan {
  Choice choice;
  std::optional<pools::Settings> crc;      // article 1
  std::optional<pools::Settings> several;  // article 2's tests 1 and 2
  std::optional<pools::Settings> fewer;    // its test 2 with a quarter of the operations
  std::optional<pools::Settings> alone;    // its test 3, and other tests with one thread
  std::optional<timers::Settings> timers;  // article 3
  std::optional<scale::Settings> scaling;  // article 4
  std::optional<scale::Settings> one_cpu;  // its tests on a single processor
  std::optional<scale::Settings> blocks;   // article 5

  [[nodiscard]] bool has(std::uint32_t article) const;
};

// Throws Failure when Freehold's library, which article 4's claims need, cannot be found.
[[nodiscard]] Plan plan_of(const Choice& choice);

// As the plan's parts.
struct Results : RunRecord {
  Plan plan;
  std::optional<pools::Results> crc, several, fewer, alone;
  std::optional<timers::Results> timers;
  std::optional<scale::Results> scaling, one_cpu, blocks;
};

[[nodiscard]] Results run_experiment(const Plan& plan, Interrupts& interrupts, Progress& progress);
// The failed measurements, a sentence each.
[[nodiscard]] std::vector<std::string> failures_of(const Results& results);

}  // namespace freehold::cli::articles
