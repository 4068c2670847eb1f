// SPDX-License-Identifier: MIT
// The frame of a subcommand that runs an experiment: settings -> results -> files, table and exit code. options.hpp makes
// the settings.
#pragma once
#include <algorithm>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/experiment/series.hpp"
#include "tools/output/page.hpp"
#include "tools/support/arguments.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/interrupts.hpp"
#include "tools/support/output_file.hpp"

namespace freehold::lab {

// The options --json and --html of an experiment, and the files that they name.
struct ResultFiles {
  std::optional<std::string> json;
  std::optional<std::string> html;

  // Pre: *this outlives the parsing. `page`: with --html.
  void add_options(Command& command, bool page);
  // Throws Failure if a file certainly cannot be written. Call it before minutes of work are spent.
  void check() const;
  // Writes the files, then the table, or with `--json -` the JSON, to standard output. The files come first, so that they
  // are written even if the terminal has gone. `page`: the frame of the HTML page. Throws Failure if something cannot be
  // written.
  void write(const nlohmann::ordered_json& results, const PageParts& page, const std::string& table) const;
};

// The first fields of an experiment's results.
[[nodiscard]] nlohmann::ordered_json head_json(const char* format, const RunRecord& record);

// run(settings, interrupts, progress) -> results, of which results_json() and table_of() make what is written. Checks before
// the measurement that the files can be written. Returns the exit code.
int run_command(const ResultFiles& files, const auto& settings, auto run, const PageParts& page) {
  files.check();
  int signal = 0;
  const auto results = [&] {
    Interrupts interrupts;
    Progress progress;
    auto measured = run(settings, interrupts, progress);
    signal = interrupts.arrived();
    return measured;
  }();
  files.write(results_json(results), page, table_of(results));
  if (signal != 0) return 128 + signal;
  return results.has_failures() ? kExitPartial : 0;
}

// The candidates of an experiment: everything that it can compare, by name. A Candidate has a `name` and a `source`, which
// says in a few words what it is; all candidates lie in one vector, in the order of the tables.
[[noreturn]] void refuse_candidate(const std::string& option, const std::string& name);
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
// `option`, the subcommand's name with two dashes.
template <class Candidate>
[[nodiscard]] std::vector<const Candidate*> parse_candidates(const std::vector<Candidate>& all, const std::string& option,
                                                             const std::string& text) {
  std::vector<const Candidate*> chosen;
  for (const std::string& name : split_list(option, text)) {
    const Candidate* const candidate = find_by_name(all, name);
    if (candidate == nullptr) refuse_candidate(option, name);
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

}  // namespace freehold::lab
