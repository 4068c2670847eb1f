// SPDX-License-Identifier: MIT
#include "cli/doctor/compare_trials.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "cli/doctor/examine.hpp"
#include "cli/doctor/variants.hpp"
#include "cli/run/program.hpp"
#include "cli/support/failure.hpp"
#include "cli/support/machine.hpp"
#include "cli/support/shell.hpp"
#include "freehold/doctor/run/paired_trials.hpp"

namespace freehold::cli::doctor {
namespace {
using freehold::doctor::PairedActivity;
using freehold::doctor::PairedNote;
using freehold::doctor::PairedRefused;
using freehold::doctor::Refusal;
using freehold::doctor::Version;

freehold::doctor::Command command_of(const std::vector<std::string>& words) {
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
    default: return doctor::failure_of(refused, program, {}, signal);
  }
}

}  // namespace

ComparisonReport compare(const CompareRequest& request, Interrupts& interrupts, Progress& progress) {
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
    auto outcome = freehold::doctor::run_paired({.commands = {command_of(request.before), command_of(request.after)},
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
    progress.wipe();
    return report;
  } catch (const PairedRefused& refused) {
    const auto& words = refused.version() == Version::kBefore ? request.before : request.after;
    throw failure_of(refused, printable(words.front()), interrupts.arrived());
  } catch (const freehold::doctor::Refused& refused) {
    throw failure_of(refused, printable(request.before.front()), {}, interrupts.arrived());
  }
}

}  // namespace freehold::cli::doctor
