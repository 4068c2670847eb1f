// SPDX-License-Identifier: MIT
// freehold doctor compare A.json B.json, or --before COMMAND --after COMMAND: what changed between two versions of a
// program.
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.hpp"
#include "tools/doctor/command/refusals.hpp"
#include "tools/doctor/command/treatments.hpp"
#include "tools/doctor/report/compare_answer.hpp"
#include "tools/doctor/run/paired_trials.hpp"
#include "tools/launch/program.hpp"
#include "tools/output/json.hpp"
#include "tools/support/arguments.hpp"
#include "tools/support/interrupts.hpp"
#include "tools/support/machine.hpp"
#include "tools/support/output_file.hpp"
#include "tools/support/quantities.hpp"
#include "tools/support/shell.hpp"

namespace freehold::cli {
namespace {
using namespace doctor::command;
using namespace doctor::report;
using doctor::PairedActivity;
using doctor::PairedNote;
using doctor::PairedRefused;
using doctor::Refusal;
using doctor::Version;

constexpr double kCompareBudget_s = 60;
constexpr unsigned kMostPairs = 1000;

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

struct CompareRequest {
  std::vector<std::string> before, after;  // commands; not empty
  double budget_s = 0;                     // time for all runs; 0: `rounds` decides
  unsigned rounds = 0;
};

CompareRequest request_of(const CompareOptions& options) {
  CompareRequest request{.before = command_words("--before", *options.before),
                         .after = command_words("--after", *options.after)};
  if (options.repeat && options.budget)
    throw Failure(kExitRefused, "--repeat is instead of --budget: how often, not how long");
  if (options.repeat)
    request.rounds = parse_number("--repeat", *options.repeat, 1, kMostPairs);
  else
    request.budget_s = options.budget ? parse_seconds("--budget", *options.budget) : kCompareBudget_s;
  return request;
}

freehold::doctor::Command program_of(const std::vector<std::string>& words) {
  freehold::doctor::Command command{.file = find_program(words.front()), .arguments = words};
  if (::access(command.file.c_str(), F_OK) != 0)
    throw Failure(kExitNotFound, fmt::format("{}: no such program", printable(words.front())));
  return command;
}

NamedSide named(const std::vector<std::string>& words) {
  const Machine machine = this_machine();
  return {.name = shell_words(words),
          .machine = fmt::format("{}, {} CPUs", machine.cpu_model, machine.cpus),
          .headline = {},
          .measured = {}};
}

std::string activity_text(const PairedActivity& activity, const std::string& command) {
  switch (activity.kind) {
    case PairedActivity::Kind::kFirstRun: return "first run of " + command;
    case PairedActivity::Kind::kRecording: return "recording " + command;
    case PairedActivity::Kind::kTrial: break;
  }
  return fmt::format("round {} of {}: {}", activity.round, activity.rounds, command);
}

std::string_view side_text(Version version) { return version == Version::kBefore ? "Before" : "After"; }

std::string note_text(const PairedNote& note) {
  const std::string_view side = side_text(note.version);
  switch (note.kind) {
    case PairedNote::Kind::kRecordedRunFailed:
      return fmt::format("{}: the recorded run failed: {}.", side, printable(note.why));
    case PairedNote::Kind::kRecordingUnreadable:
      return fmt::format("{}: a process's recording could not be read: {}.", side, printable(note.why));
    case PairedNote::Kind::kUnderFreehold: break;
  }
  return fmt::format("{}: it runs under Freehold, which comes before the probe: its allocations were not counted.", side);
}

// As of an examination, but there is no option to go on all the same.
Failure failure_of(const PairedRefused& refused, const std::string& program, int signal) {
  const std::string more = printable(refused.more());
  switch (refused.why()) {
    case Refusal::kFails:
      return {kExitRefused,
              fmt::format("{} fails: {}{}{}", program, printable(refused.detail()), more.empty() ? "" : ": ", more)};
    case Refusal::kNoEnd:
      return {kExitRefused, fmt::format("{} did not end within {:.0f} s; give it time: --budget {:.0f}", program,
                                        refused.seconds(), 10 * refused.seconds())};
    case Refusal::kInterruptedAtFirst:
      return {128 + signal, "interrupted before both programs had ended for the first time"};
    default: return doctor::command::failure_of(refused, program, {}, signal);
  }
}

// Runs both in turns. Throws Failure if one of them cannot be run, fails or does not end, or if it was interrupted before
// the first round ended.
ComparisonReport run_both(const CompareRequest& request) {
  Interrupts interrupts;
  Progress progress;
  NamedSide before = named(request.before), after = named(request.after);
  const auto name_of = [&](Version version) { return version == Version::kBefore ? before.name : after.name; };
  std::vector<std::string> notes;
  auto caller = freehold::doctor::trials_on({.mask = interrupts.original_mask(), .stop_fd = interrupts.fd()});
  caller.show = [&](const PairedActivity& activity) { progress.show(activity_text(activity, name_of(activity.version))); };
  caller.signal = [&interrupts] { return interrupts.arrived(); };
  caller.probe = [&notes](Version version, const std::set<std::string>& files) {
    std::vector<std::string> reasons;
    std::string probe = find_probe(malloc_origin(files), reasons);
    for (const std::string& reason : reasons) notes.push_back(fmt::format("{}: {}", side_text(version), reason));
    return probe;
  };
  try {
    auto outcome = freehold::doctor::run_paired({.commands = {program_of(request.before), program_of(request.after)},
                                                 .budget_s = request.budget_s,
                                                 .rounds = request.rounds},
                                                caller);
    before.measured = std::move(outcome.sides[0]);
    after.measured = std::move(outcome.sides[1]);
    ComparisonReport report = compare(std::move(before), std::move(after));
    report.signal = outcome.signal;
    if (!outcome.complete) report.notes.emplace_back("Interrupted: this is what was finished until then.");
    report.notes.insert(report.notes.end(), notes.begin(), notes.end());
    for (const PairedNote& note : outcome.notes) report.notes.push_back(note_text(note));
    return report;
  } catch (const PairedRefused& refused) {
    const auto& words = refused.version() == Version::kBefore ? request.before : request.after;
    throw failure_of(refused, printable(words.front()), interrupts.arrived());
  } catch (const freehold::doctor::Refused& refused) {
    throw doctor::command::failure_of(refused, printable(request.before.front()), {}, interrupts.arrived());
  }
}

ComparisonReport comparison_of(const CompareOptions& options) {
  if (options.reports.size() == 2 && !options.before && !options.after) {
    if (options.budget || options.repeat)
      throw Failure(kExitRefused, "--budget and --repeat are for commands: reports were measured already");
    NamedSide before = read_side(options.reports[0]);  // the first that is wrong is named
    return compare(std::move(before), read_side(options.reports[1]));
  }
  if (!options.reports.empty() || !options.before || !options.after)
    throw Failure(kExitRefused,
                  "doctor compare: two reports, A.json B.json, or two commands, --before './old args' --after './new args'");
  return run_both(request_of(options));
}

int run_compare(const CompareOptions& options) {
  open_standard_files();
  if (options.summary) check_writable(*options.summary);
  const double worse_by = options.worse_than ? parse_percentage("--worse-than", *options.worse_than) : 0;
  check_report(options.json);
  if (options.json && options.summary) check_different({{"--json", *options.json}, {"--summary", *options.summary}});
  const ComparisonReport comparison = comparison_of(options);
  const Gate gate = options.worse_than ? worse_than(comparison, *options.worse_than, worse_by) : Gate{};
  const Document answer = document_of(comparison, gate);
  if (options.summary) write_file(*options.summary, markdown_of(answer));
  write_report(options.json, text_of(json_of(comparison)), text_of(answer), text_of(answer));
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
  command.add_option("--summary", options.summary, "Write the answer in Markdown, for the page of a job", "FILE");
  command.footer("docs/doctor-ci.md explains the figures and the exit codes.");
  command.on_use([&invocation] { invocation.exit_code = run_compare(options); });
}

}  // namespace freehold::cli
