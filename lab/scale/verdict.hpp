// SPDX-License-Identifier: MIT
// Decides for each finding of the scaling article whether the figures of this machine reproduce it, refute it, or neither.
//
// Each finding is a ratio of two scaling curves: the geometric mean over the worker counts above one, computed in every set
// on its own. It is decided if the whole range of the sets lies on one side of its threshold. Otherwise the sets contradict
// each other, and the finding is undecided; so is everything if the machine was busy with other work. The control of the
// first two findings is the compute workload in the same mode. Its workers share nothing, so no workload could have scaled
// better on this machine at that moment.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/scale/results.hpp"

namespace freehold::cli::scale {

enum class Outcome : std::uint8_t { kNotMeasured, kReproduced, kRefuted, kUndecided };
inline constexpr Names<Outcome, 4> kOutcomes{{"not measured", "reproduced", "refuted", "undecided"}};
[[nodiscard]] constexpr const auto& names_of(Outcome) { return kOutcomes; }

// A workload scales like another if it reaches this much of the other's speed.
inline constexpr double kScales = 0.80;         // of the compute workload
inline constexpr double kLikeProcesses = 0.85;  // of the processes
// A pool pays off for a locked component from this many times the threads' speed on: the scaling article's gain.
inline constexpr double kUnlocks = 1.5;
// From this share of the CPUs on that other processes had, nothing is decided.
inline constexpr double kBusyMachine = 0.15;
// One set has no range. It is taken to be this factor off, as single sets of a quiet machine were.
inline constexpr double kOneSet = 1.5;

struct Claim {
  std::string_view id;
  std::string statement;  // "threads on the system allocator degrade"
  Outcome outcome = Outcome::kNotMeasured;
  std::string figures;                           // a sentence
  std::optional<double> ratio, least, greatest;  // over the sets: median and range
};

struct Verdict {
  std::vector<Claim> claims;
  std::string paragraph;
};

[[nodiscard]] Verdict verdict_of(const Results& results);
// Sentences about shared CPUs, sets that differ, failures and interruption.
[[nodiscard]] std::vector<std::string> notes_of(const Results& results);
// The failed measurements, a sentence each.
[[nodiscard]] std::vector<std::string> failures_of(const Results& results);
// Whether all ratios (one for each set) lie on one side of the threshold. A ratio equal to it reproduces.
[[nodiscard]] Outcome decide(const std::vector<double>& ratios, double threshold, bool below_reproduces);

}  // namespace freehold::cli::scale
