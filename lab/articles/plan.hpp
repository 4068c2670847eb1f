// SPDX-License-Identifier: MIT
// The measurements for the articles' claims: experiments of the other commands, each limited to the rows that a claim needs.
// There is no measuring code here.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "lab/pools/plan.hpp"
#include "lab/scale/plan.hpp"
#include "lab/timers/plan.hpp"

namespace freehold::cli::articles {

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

}  // namespace freehold::cli::articles
