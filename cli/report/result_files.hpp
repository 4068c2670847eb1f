// The files that an experiment leaves beside its table, if asked to: --json and --html.
#pragma once
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace freehold::cli {

struct ResultFiles {
  std::optional<std::string> json;
  std::optional<std::string> html;

  // Pre: *this outlives the parsing.
  void add_options(CLI::App& command);
  // Throws Failure if a file certainly cannot be written. To be asked before minutes of work are spent.
  void check() const;
  // `page` makes the page of the results. Standard output has the table, or with `--json -` the JSON. Files first: a
  // terminal that went away must not cost them. Throws Failure if something cannot be written.
  void write(const nlohmann::ordered_json& results, const std::function<std::string(const nlohmann::ordered_json&)>& page,
             const std::string& table) const;
};

}  // namespace freehold::cli
