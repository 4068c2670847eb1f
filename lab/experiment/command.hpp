// SPDX-License-Identifier: MIT
// The frame of a subcommand that runs an experiment: its common options, then options -> settings -> results -> files,
// table and exit code. A subcommand adds its own options, its measurement and its words.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "cli/support/arguments.hpp"
#include "cli/support/failure.hpp"
#include "cli/support/interrupts.hpp"
#include "cli/support/progress.hpp"
#include "lab/experiment/result_files.hpp"

namespace freehold::cli {

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

}  // namespace freehold::cli
