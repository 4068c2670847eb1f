// SPDX-License-Identifier: MIT
// A gate for continuous integration: --fail-on asks for the cause of a report of `freehold doctor`, be it one that was just
// made or one that lies in a file; --worse-than asks for the time of a comparison.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/doctor/verdict/verdict.hpp"
#include "tools/support/command_line.hpp"

namespace freehold::doctor::report {

inline constexpr int kExitHolds = 0;
inline constexpr int kExitFails = 1;
inline constexpr int kExitUndecided = 3;

enum class Answer : std::uint8_t { kNo, kUndecided, kYes };

struct Gate {
  std::string asked;  // "--fail-on own-lock"; empty: nothing was
  Answer fails = Answer::kNo;
  std::string because;  // "the cause is own-lock"

  [[nodiscard]] int exit_code() const noexcept;
};
// A line, and the way out where it is undecided. Empty: nothing was asked.
[[nodiscard]] std::string text_of(const Gate& gate);

enum class Question : std::uint8_t { kTime, kMemory };

// The causes that --fail-on names, as the report names them; "allocator" is every one that blames it.
class FailOn {
 public:
  // Throws Failure, one line that lists the causes, for a name that is none of them.
  FailOn(Question question, const std::optional<std::string>& list);
  // `cause`: that of the verdict. An undecided verdict is no answer, unless "undecided" is among the names.
  [[nodiscard]] Gate judge(std::string_view cause) const;
  [[nodiscard]] bool is_asked() const noexcept { return !causes_.empty(); }

 private:
  std::string list_;
  std::vector<std::string_view> causes_;
};

// "10%" -> 0.1. Throws Failure, one line, for anything else.
[[nodiscard]] double parse_percentage(const std::string& option, const std::string& text);

// A file that `freehold doctor --json` wrote. Throws Failure, a line that names the file, for anything else.
[[nodiscard]] nlohmann::ordered_json read_report(const std::string& file);
// The share of the time on all CPUs that is lost. Of a program that was run in one setting alone, it is not known.
[[nodiscard]] std::optional<doctor::Estimate> lost_in(const nlohmann::ordered_json& report);

// Options that several of the doctor's commands have.
inline constexpr unsigned kMostRounds = 1000;  // of --repeat

// "10", "2.5s", "300ms", "2m", "1h" -> seconds. Throws Failure.
[[nodiscard]] double parse_seconds(const std::string& option, const std::string& text);

// --summary. Pre: `file` outlives the parsing.
void add_summary(tools::Command& command, std::optional<std::string>& file);

// A report for the page of a job, in Markdown: the verdict, the gate's answer and the figures behind them, within a screen;
// the rest is folded away. From the report's JSON, so that a stored one can be shown as well.

// Names come from the program and from the user: none of them breaks a table or becomes markup.
[[nodiscard]] std::string markdown_of(const nlohmann::ordered_json& report, const Gate& gate);

// Text that Markdown shows as it is, within a table, too.
[[nodiscard]] std::string markdown_text(std::string_view text);
// The same as code.
[[nodiscard]] std::string markdown_code(std::string_view text);
// The gate's answer as a table; empty: there is none.
[[nodiscard]] std::string markdown_of(const Gate& gate);

}  // namespace freehold::doctor::report
