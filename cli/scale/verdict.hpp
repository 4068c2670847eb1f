// What the figures say about the scaling article's findings, on this machine: reproduced, refuted, or undecided.
//
// Each finding is a ratio of two scaling curves, the geometric mean over the worker counts above one, computed in every set
// on its own. It is decided when two thirds of the sets lie on the same side of its threshold; otherwise the sets contradict
// each other and it is undecided, as is everything on a machine that was busy with something else. The control of the first
// two is the compute workload in the same mode, which shares nothing: what it did not reach, nobody could have reached on
// this machine at that moment.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/scale/results.hpp"

namespace freehold::cli::scale {

enum class Outcome : std::uint8_t { kNotMeasured, kReproduced, kRefuted, kUndecided };
[[nodiscard]] std::string_view name_of(Outcome outcome);

// A workload that reaches less than this much of what it is compared with does not scale like it.
inline constexpr double kScales = 0.80;         // of the compute workload
inline constexpr double kLikeProcesses = 0.85;  // of the processes
// A pool is worth it for a locked component from so many times the threads' speed on: the scaling article's gain.
inline constexpr double kUnlocks = 1.5;

struct Claim {
  std::string_view id;
  std::string statement;  // "threads on the system allocator degrade"
  Outcome outcome = Outcome::kNotMeasured;
  std::string figures;          // a sentence
  std::optional<double> ratio;  // the median over the sets
};

struct Verdict {
  std::vector<Claim> claims;
  std::string paragraph;
};

[[nodiscard]] Verdict verdict_of(const Results& results);
// What a reader has to know about these results: CPUs that were shared, sets that differ, failures. A sentence each.
[[nodiscard]] std::vector<std::string> notes_of(const Results& results);
// Whether ratios (one for each set) lie below the threshold, above it, or on both sides.
[[nodiscard]] Outcome decide(const std::vector<double>& ratios, double threshold, bool below_reproduces);

}  // namespace freehold::cli::scale
