// SPDX-License-Identifier: MIT
// The options --json and --html of an experiment, and the files that they name.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cli/support/command_line.hpp"
#include "lab/experiment/series.hpp"

namespace freehold::cli {

struct ResultFiles {
  std::optional<std::string> json;
  std::optional<std::string> html;

  // Pre: *this outlives the parsing.
  void add_options(Command& command);
  // --json only.
  void add_json(Command& command);
  // Throws Failure if a file certainly cannot be written. Call it before minutes of work are spent.
  void check() const;
  // Writes the files, then the table, or with `--json -` the JSON, to standard output. The files come first, so that they
  // are written even if the terminal has gone. `page` makes the HTML page. Throws Failure if something cannot be written.
  using Page = std::function<std::string(const nlohmann::ordered_json&)>;
  void write(const nlohmann::ordered_json& results, const Page& page, const std::string& table) const;
  // Pre: there is no --html.
  void write(const nlohmann::ordered_json& results, const std::string& table) const { write(results, nullptr, table); }
};

// The first fields of an experiment's results.
[[nodiscard]] nlohmann::ordered_json head_json(const char* format, const RunRecord& record);

}  // namespace freehold::cli
