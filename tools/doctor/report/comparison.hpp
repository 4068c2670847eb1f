// SPDX-License-Identifier: MIT
// Says in words how two versions of a program differ: for the terminal, for a job's page, as JSON. The figures are
// tools/doctor/facts/comparison.hpp's; the trials come from reports' files or are run here.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/doctor/facts/comparison.hpp"
#include "tools/doctor/report/gate.hpp"
#include "tools/support/interrupts.hpp"

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
// Pre: of read_report().
[[nodiscard]] NamedSide side_of(const nlohmann::ordered_json& report, std::string name);

// Whether it takes surely longer than before, by more than `share` of that. `asked`: the option's text.
[[nodiscard]] Gate worse_than(const ComparisonReport& report, const std::string& asked, double share);

[[nodiscard]] std::string text_of(const ComparisonReport& report);
[[nodiscard]] std::string markdown_of(const ComparisonReport& report, const Gate& gate);
[[nodiscard]] nlohmann::ordered_json json_of(const ComparisonReport& report);

// The command's side of comparing two commands: finds the programs and the probe, shows how far it has come, and says in
// sentences what could not be done. tools/doctor/run/paired_trials.hpp does the work.
struct CompareRequest {
  std::vector<std::string> before, after;  // commands; not empty
  double budget_s = 0;                     // time for all runs; 0: `rounds` decides
  unsigned rounds = 0;
};

// Throws Failure if one of them cannot be run, fails or does not end, or if it was interrupted before the first round ended.
[[nodiscard]] ComparisonReport compare(const CompareRequest& request, Interrupts& interrupts, Progress& progress);

}  // namespace freehold::doctor::report
