// SPDX-License-Identifier: MIT
// Options that several of the doctor's commands have.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/support/command_line.hpp"

namespace freehold::cli::doctor {

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

}  // namespace freehold::cli::doctor
