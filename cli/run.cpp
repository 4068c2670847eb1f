// SPDX-License-Identifier: MIT
// freehold run [--stats] [--json FILE] [--] PROGRAM ARGS…
// Runs a program under libfreehold.so. The program's output and exit status pass through untouched; the stats go to
// standard error and into the file. docs/run.md has the exit codes.
#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.hpp"
#include "cli/report/json.hpp"
#include "cli/run/launch.hpp"
#include "cli/run/program.hpp"
#include "cli/stats_json.hpp"
#include "cli/stats_table.hpp"
#include "cli/support/failure.hpp"
#include "cli/support/library.hpp"
#include "cli/support/machine.hpp"
#include "cli/support/output_file.hpp"

namespace freehold::cli {
namespace {
using nlohmann::ordered_json;

struct RunOptions {
  bool stats = false;
  std::optional<std::string> json;
};

// Arguments and paths may be any bytes; those that are not UTF-8 are replaced.
std::string dump(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

ordered_json exit_json(int status) {
  if (WIFSIGNALED(status)) return {{"signal", WTERMSIG(status)}};
  return {{"code", WEXITSTATUS(status)}};
}

ordered_json run_json(const Launch& launch, const Outcome& outcome) {
  return {
      {"format", "freehold-run"},
      {"version", 1},
      {"program", launch.arguments},
      {"library", launch.library},
      {"exit", exit_json(outcome.wait_status)},
      {"elapsed_seconds", outcome.elapsed_seconds},
      {"user_seconds", outcome.user_seconds},
      {"system_seconds", outcome.system_seconds},
      {"peak_rss_bytes", outcome.peak_rss_bytes},
      {"machine", machine_json(this_machine())},
      {"stats", outcome.has_stats ? stats_json(outcome.stats) : ordered_json(nullptr)},
  };
}

void print_missing_stats(const Launch& launch, int status) {
  const std::string name = printable(launch.arguments.front());
  if (WIFSIGNALED(status)) {
    fmt::print(stderr, "freehold: {} was killed by signal {} before it could leave stats\n", name, WTERMSIG(status));
  } else {
    fmt::print(stderr,
               "freehold: {} left no stats: it allocated nothing, did not load libfreehold.so, or did not end by exit() in "
               "the process that was started\n",
               name);
  }
}

void print_stats(const Launch& launch, const Outcome& outcome) {
  fmt::print(stderr, "freehold: {}: {:.2f} s, user {:.2f} s, system {:.2f} s, peak memory {}\n{}",
             printable(launch.arguments.front()), outcome.elapsed_seconds, outcome.user_seconds, outcome.system_seconds,
             bytes_text(outcome.peak_rss_bytes), outcome.has_stats ? stats_table(outcome.stats, huge_pages_mode()) : "");
}

void run(const RunOptions& options, const std::vector<std::string>& program) {
  if (program.empty())
    throw Failure(kExitRefused, "run: no program given: freehold run [--stats] [--json FILE] -- PROGRAM ARGS...");
  Launch launch{.program = {}, .arguments = program, .library = find_freehold_library()};
  launch.program = find_program(program.front());
  check_program(launch.program, launch.library);
  if (options.json) check_writable(*options.json);
  if (!options.stats && !options.json) become(launch);

  const Outcome outcome = supervise(launch);
  if (options.stats) print_stats(launch, outcome);
  if (!outcome.has_stats) print_missing_stats(launch, outcome.wait_status);
  if (options.json) write_file(*options.json, dump(run_json(launch, outcome)));
  end_like(outcome.wait_status);
}

}  // namespace

void add_run(CLI::App& app, Invocation& invocation) {
  static RunOptions options;
  Command command(app, "run", "Run a program under Freehold's malloc: freehold run -- PROGRAM ARGS...");
  command.add_flag("--stats", options.stats, "Print allocator statistics to standard error when the program has ended");
  command.add_option("--json", options.json,
                     "Write the statistics as JSON to a file; standard output belongs to the program", "FILE");
  command.footer("The exit status is the program's. docs/run.md has the exit codes and the environment.");
  command.on_use([&invocation] { run(options, invocation.program); });
}

}  // namespace freehold::cli
