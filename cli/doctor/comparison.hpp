// SPDX-License-Identifier: MIT
// Two versions of a program, or two reports of one: what changed, and whether it can be chance. Pure: the trials come from
// reports' files or from compare_trials.hpp.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/doctor/gate.hpp"
#include "freehold/doctor/analysis/verdict.hpp"
#include "freehold/doctor/run/trial.hpp"

namespace freehold::cli::doctor {

struct Side {
  std::string name;                                     // the report's file, or the command
  std::string machine;                                  // "Made-up CPU, 4 CPUs"
  std::string all_text, alone_text;                     // the settings: "4 CPUs", "1 CPU"
  std::vector<freehold::doctor::Trial> all, alone;      // of the program as it is, in both
  std::optional<freehold::doctor::Estimate> lost;       // share of the time on all CPUs
  std::optional<freehold::doctor::Estimate> in_malloc;  // share of the CPU time, as it was recorded
  std::optional<double> allocations;                    // in one run
  std::string headline;                                 // the verdict; empty: none was asked for
};

enum class Unit : std::uint8_t { kSeconds, kBytes, kCount, kShare };

struct Change {
  std::string_view name;  // in a condition and in JSON: "time"
  std::string what;       // "time on 4 CPUs"
  Unit unit;
  freehold::doctor::Estimate before, after;
  std::optional<freehold::doctor::Estimate> ratio;  // after divided by before; none for shares
  bool is_beyond_chance = false;
};

struct Comparison {
  Side before, after;
  std::vector<Change> changes;  // what both sides have
  std::vector<std::string> notes;
  int signal = 0;  // that ended it early, or 0
};

inline constexpr const char* kComparisonSchema = "freehold-doctor-comparison/1";

// Throws Failure if the two have nothing in common: other settings, no trials.
[[nodiscard]] Comparison compare(Side before, Side after);
// Pre: of read_report().
[[nodiscard]] Side side_of(const nlohmann::ordered_json& report, std::string name);

// What --fail-if may name of a comparison, and its figures.
[[nodiscard]] std::span<const Word> comparison_words() noexcept;
[[nodiscard]] Facts facts_of(const Comparison& comparison);

[[nodiscard]] std::string text_of(const Comparison& comparison);
[[nodiscard]] std::string markdown_of(const Comparison& comparison, const Gate& gate);
[[nodiscard]] nlohmann::ordered_json json_of(const Comparison& comparison);

}  // namespace freehold::cli::doctor
