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
#include "cli/support/command_line.hpp"

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

// The gate of `freehold doctor --memory`: what --fail-if may name, and what a report says of it. docs/memory.md says what
// each figure is.
[[nodiscard]] std::span<const Word> memory_words() noexcept;
// Pre: what json_of() made of a diagnosis.
[[nodiscard]] Facts memory_facts_of(const nlohmann::ordered_json& report);
// "glibc, 1 arena" is "arenas" in --allocators, and here.
[[nodiscard]] std::string memory_treatment_name(std::string_view name);

// Options that several of the doctor's commands have.
inline constexpr unsigned kMostRounds = 1000;  // of --repeat

// "10", "2.5s", "300ms", "2m", "1h" -> seconds. Throws Failure.
[[nodiscard]] double parse_seconds(const std::string& option, const std::string& text);

struct GateOptions {
  std::vector<std::string> fail_if;
  std::optional<std::string> summary;

  // Pre: *this outlives the parsing. `example`: of a condition.
  void add_to(Command& command, const std::string& example);
  // Throws Failure if the summary certainly cannot be written.
  void check() const;
};

// A report for the page of a job, in Markdown: the verdict, the gate's answer and the figures behind them, within a screen;
// the rest is folded away. From the report's JSON, so that a stored one can be shown as well.

// Names come from the program and from the user: none of them breaks a table or becomes markup.
[[nodiscard]] std::string markdown_of(const nlohmann::ordered_json& report, const Gate& gate);

// Text that Markdown shows as it is, within a table, too.
[[nodiscard]] std::string markdown_text(std::string_view text);
// The same as code.
[[nodiscard]] std::string markdown_code(std::string_view text);
// The gate's answers as a table; empty: there is none.
[[nodiscard]] std::string markdown_of(const Gate& gate);

}  // namespace freehold::cli::doctor
