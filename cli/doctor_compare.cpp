// SPDX-License-Identifier: MIT
// freehold doctor compare A.json B.json, or --before COMMAND --after COMMAND: what changed between two versions of a
// program.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.hpp"
#include "tools/doctor/report/comparison.hpp"
#include "tools/doctor/report/gate.hpp"
#include "tools/output/json.hpp"
#include "tools/support/arguments.hpp"
#include "tools/support/output_file.hpp"
#include "tools/support/shell.hpp"

namespace freehold::cli {
namespace {
using namespace doctor::report;

constexpr double kCompareBudget_s = 60;

struct CompareOptions {
  std::vector<std::string> reports;
  std::optional<std::string> before, after, budget, repeat, json, worse_than, summary;
};

std::vector<std::string> command_words(const std::string& option, const std::string& text) {
  auto words = split_words(text);
  if (!words) throw Failure(kExitRefused, fmt::format("{}: a quote in '{}' does not end", option, printable(text)));
  if (words->empty()) throw Failure(kExitRefused, fmt::format("{}: the command is empty", option));
  return *std::move(words);
}

CompareRequest request_of(const CompareOptions& options) {
  CompareRequest request{.before = command_words("--before", *options.before),
                         .after = command_words("--after", *options.after)};
  if (options.repeat && options.budget)
    throw Failure(kExitRefused, "--repeat is instead of --budget: how often, not how long");
  if (options.repeat)
    request.rounds = parse_number("--repeat", *options.repeat, 1, kMostRounds);
  else
    request.budget_s = options.budget ? parse_seconds("--budget", *options.budget) : kCompareBudget_s;
  return request;
}

ComparisonReport comparison_of(const CompareOptions& options) {
  if (options.reports.size() == 2 && !options.before && !options.after) {
    if (options.budget || options.repeat)
      throw Failure(kExitRefused, "--budget and --repeat are for commands: reports were measured already");
    const auto before = side_of(read_report(options.reports[0]), options.reports[0]);  // the first that is wrong is named
    return compare(before, side_of(read_report(options.reports[1]), options.reports[1]));
  }
  if (!options.reports.empty() || !options.before || !options.after)
    throw Failure(kExitRefused,
                  "doctor compare: two reports, A.json B.json, or two commands, --before './old args' --after './new args'");
  const CompareRequest request = request_of(options);
  Interrupts interrupts;
  Progress progress;
  return compare(request, interrupts, progress);
}

int run_compare(const CompareOptions& options) {
  open_standard_files();
  if (options.summary) check_writable(*options.summary);
  const double worse_by = options.worse_than ? parse_percentage("--worse-than", *options.worse_than) : 0;
  check_report(options.json);
  if (options.json && options.summary) check_different({{"--json", *options.json}, {"--summary", *options.summary}});
  const ComparisonReport comparison = comparison_of(options);
  const Gate gate = options.worse_than ? worse_than(comparison, *options.worse_than, worse_by) : Gate{};
  const std::string text = text_of(comparison) + text_of(gate);
  if (options.summary) write_file(*options.summary, markdown_of(comparison, gate));
  write_report(options.json, tools::text_of(json_of(comparison)), text, text);
  return comparison.signal != 0 ? 128 + comparison.signal : gate.exit_code();
}

}  // namespace

void add_doctor_compare(Command& doctor, Invocation& invocation) {
  static CompareOptions options;
  Command command = doctor.add_subcommand(
      "compare", "What changed between two reports, or between two commands: --before './old' --after './new'");
  command.add_words("reports", options.reports, "Two files that 'freehold doctor --json' wrote", "FILE", 2);
  command.add_option("--before", options.before, "Command to compare with; words as in a shell, nothing is expanded",
                     "COMMAND");
  command.add_option("--after", options.after, "Command to compare; the two are run in turns", "COMMAND");
  command.add_option("--budget", options.budget, "Time limit for all runs together [60s]", "TIME");
  command.add_option("--repeat", options.repeat, "Run both so many times, however long it takes", "N");
  command.add_option("--json", options.json, "Write everything as JSON; - for standard output", "FILE");
  command.add_option("--worse-than", options.worse_than,
                     "Exit with 1 if it takes longer than before by more than this: 10%; with 3 if that cannot be told",
                     "PERCENT");
  add_summary(command, options.summary);
  command.footer("docs/doctor-ci.md explains the figures and the exit codes.");
  command.on_use([&invocation] { invocation.exit_code = run_compare(options); });
}

}  // namespace freehold::cli
