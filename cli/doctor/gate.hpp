// SPDX-License-Identifier: MIT
// A gate for continuous integration: the conditions of --fail-if, asked of a report of `freehold doctor`, be it one that was
// just made or one that lies in a file. Both go through the same JSON, so that they get the same answer.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/doctor/condition.hpp"

namespace freehold::cli::doctor {

inline constexpr int kExitHolds = 0;
inline constexpr int kExitFails = 1;
inline constexpr int kExitUndecided = 3;

// What --fail-if may name of a report.
[[nodiscard]] std::span<const Word> report_words() noexcept;
// Throws Failure for what cannot be understood.
[[nodiscard]] std::vector<Condition> conditions_of(std::string_view option, std::span<const std::string> texts,
                                                   std::span<const Word> words);
// Throws Failure if a condition names a treatment that is not one of `names`: a gate with a typing error would never decide.
void check_treatments(std::string_view option, std::span<const Condition> conditions, std::span<const std::string> names);

// Pre: a report that read_report() or results_json() gave. docs/doctor-ci.md says what each figure is.
[[nodiscard]] Facts facts_of(const nlohmann::ordered_json& report);
// The names of the treatments in it, and "best".
[[nodiscard]] std::vector<std::string> treatments_of(const nlohmann::ordered_json& report);

// A file that `freehold doctor --json` wrote. Throws Failure, a line that names the file, for anything else.
[[nodiscard]] nlohmann::ordered_json read_report(const std::string& file);

struct Gate {
  Answer fails = Answer::kNo;                                            // whether any condition holds
  std::vector<std::pair<std::string, Condition::Judgement>> conditions;  // the text of each, and its answer

  [[nodiscard]] int exit_code() const noexcept;
};
[[nodiscard]] Gate judge(std::span<const Condition> conditions, const Facts& facts);
// A line for each condition, and the way out where one is undecided. Empty: there are none.
[[nodiscard]] std::string text_of(const Gate& gate);

}  // namespace freehold::cli::doctor
