// SPDX-License-Identifier: MIT
// The frame of a subcommand that runs an experiment: its common options, then options -> settings -> results -> files,
// table and exit code. A subcommand adds its own options, its measurement and its words.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/support/arguments.hpp"
#include "cli/support/command_line.hpp"
#include "cli/support/failure.hpp"
#include "cli/support/interrupts.hpp"
#include "cli/support/output_file.hpp"
#include "lab/experiment/series.hpp"

namespace freehold::cli {

// The options --json and --html of an experiment, and the files that they name.
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

// --repeat, --time, --quick, --json and --html.
struct ExperimentOptions {
  std::optional<std::string> repeat;
  std::optional<std::string> milliseconds;
  ResultFiles files;
  bool quick = false;

  struct Help {
    const char* sets;   // default of --repeat, "5"
    const char* time;   // of --time; null: there is no such option
    const char* quick;  // of --quick
    const char* page;   // of the documentation: "docs/pools-compare.md explains the tests and the method."
  };
  // To be called last, so that these options come last in the help. Pre: *this outlives the parsing.
  void add_to(Command& command, const Help& help);

  // Into settings.repeat and, with `quick_milliseconds`, settings.milliseconds. --quick first: named options override it.
  void apply_repeat(auto& settings) const {
    if (quick) settings.repeat = 1;
    parse_into(settings.repeat, "--repeat", repeat, 1, 1000);
  }
  void apply(auto& settings, std::uint32_t quick_milliseconds) const {
    apply_repeat(settings);
    if (quick) settings.milliseconds = quick_milliseconds;
    parse_into(settings.milliseconds, "--time", milliseconds, 1, 60'000);
  }
};

// run(settings, interrupts, progress) -> results; write(files, results) -> whether every measurement succeeded. Checks
// before the measurement that the files can be written. Returns the exit code.
int run_command(const ResultFiles& files, const auto& settings, auto run, auto write) {
  files.check();
  int signal = 0;
  const auto results = [&] {
    Interrupts interrupts;
    Progress progress;
    auto measured = run(settings, interrupts, progress);
    signal = interrupts.arrived();
    return measured;
  }();
  const bool succeeded = write(files, results);
  if (signal != 0) return 128 + signal;
  return succeeded ? 0 : kExitPartial;
}

// The candidates of an experiment: everything that it can compare, by name. A Candidate has a `name` and a `source`, which
// says in a few words what it is; all candidates lie in one vector, in the order of the tables.
[[noreturn]] void refuse_candidate(const std::string& option, const std::string& subcommand, const std::string& name);
[[nodiscard]] std::string list_line(const std::string& name, const std::string& source);

// Null if no candidate has this name.
template <class Candidate>
[[nodiscard]] const Candidate* find_by_name(const std::vector<Candidate>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Candidate::name);
  return found == all.end() ? nullptr : &*found;
}

template <class Candidate>
[[nodiscard]] std::vector<const Candidate*> pointers_to(const std::vector<Candidate>& all) {
  std::vector<const Candidate*> pointers;
  for (const Candidate& candidate : all) pointers.push_back(&candidate);
  return pointers;
}

// The candidates named in `text`, "best,boost-pool", in the order of the tables, each once. Throws Failure, which names
// `option` and the subcommand whose --list has the names.
template <class Candidate>
[[nodiscard]] std::vector<const Candidate*> parse_candidates(const std::vector<Candidate>& all, const std::string& option,
                                                             const std::string& subcommand, const std::string& text) {
  std::vector<const Candidate*> chosen;
  for (const std::string& name : split_list(option, text)) {
    const Candidate* const candidate = find_by_name(all, name);
    if (candidate == nullptr) refuse_candidate(option, subcommand, name);
    chosen.push_back(candidate);
  }
  std::ranges::sort(chosen);  // all lie in one array
  chosen.erase(std::ranges::unique(chosen).begin(), chosen.end());
  return chosen;
}

// --list. Returns the exit code.
int print_list(const auto& all) {
  std::string out;
  for (const auto& candidate : all) out += list_line(candidate.name, candidate.source);
  print_to_stdout(out);
  return 0;
}

}  // namespace freehold::cli
