// SPDX-License-Identifier: MIT
// A claim that figures of this machine reproduce, refute, or neither: a ratio and a threshold. Each set gives a ratio of its
// own, from figures that were measured side by side. Unless all sets lie on one side of the threshold, the claim is
// undecided.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/support/names.hpp"
#include "lab/experiment/sets.hpp"

namespace freehold::cli {

enum class Outcome : std::uint8_t { kReproduced, kRefuted, kUndecided, kNotTestable, kNotMeasured };
inline constexpr Names<Outcome, 5> kOutcomes{{"reproduced", "refuted", "undecided", "not testable", "not measured"}};
[[nodiscard]] constexpr const auto& names_of(Outcome) { return kOutcomes; }

// From this share of the CPUs on that other programs had, nothing is decided by elapsed time.
inline constexpr double kBusyMachine = 0.15;
// One set has no range. It is taken to be this factor off, as single sets of a quiet machine were.
inline constexpr double kOneSet = 1.5;

// Decides whether all ratios (one for each set) lie on one side of the threshold. A ratio equal to it reproduces. Pre: not
// empty.
[[nodiscard]] Outcome decide(const std::vector<double>& ratios, double threshold, bool at_least);

struct Claim {
  std::string id;         // "processes-scale"
  std::string statement;  // "processes scale"
  Outcome outcome = Outcome::kNotMeasured;
  std::string figure = {};          // a sentence
  std::optional<Range> ratio = {};  // over the sets
  double threshold = 0;
  bool at_least = true;  // reproduced if the ratio is at least the threshold; else if at most

  // Decides it, unless no set has a ratio.
  void judge(const Sets& ratios, double wanted, bool is_at_least);
};

}  // namespace freehold::cli
