// SPDX-License-Identifier: MIT
// Says in words how two versions of a program differ: for the terminal, for a job's page, as JSON. The figures are
// freehold/doctor/analysis/comparison.hpp's; the trials come from reports' files or are run here.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/doctor/facts/comparison.hpp"
#include "tools/doctor/report/document.hpp"
#include "tools/doctor/report/gate.hpp"

namespace freehold::doctor::report {

struct NamedSide {
  std::string name;      // the report's file, or the command
  std::string machine;   // "Made-up CPU, 4 CPUs"
  std::string headline;  // the verdict; empty: none was asked for
  doctor::Side measured;
};

struct ComparisonReport {
  NamedSide before, after;
  doctor::Comparison comparison;  // without a mismatch
  std::vector<std::string> notes;
  int signal = 0;  // that ended it early, or 0
};

inline constexpr const char* kComparisonSchema = "freehold-doctor-comparison/1";

// Throws Failure if the two have nothing in common: other settings, no trials.
[[nodiscard]] ComparisonReport compare(NamedSide before, NamedSide after);
// Returns what a report says of its program as it is. Throws nlohmann's exception where that is missing or another kind of
// value.
[[nodiscard]] NamedSide side_of(const nlohmann::ordered_json& report, std::string name);
// The same of a file that `freehold doctor --json` wrote. Throws Failure, a line that names the file, for any other.
[[nodiscard]] NamedSide read_side(const std::string& file);

// Says whether it takes surely longer than before, by more than `share` of that. `asked`: the option's text.
[[nodiscard]] Gate worse_than(const ComparisonReport& report, const std::string& asked, double share);

[[nodiscard]] Document document_of(const ComparisonReport& report, const Gate& gate);
[[nodiscard]] nlohmann::ordered_json json_of(const ComparisonReport& report);

}  // namespace freehold::doctor::report
