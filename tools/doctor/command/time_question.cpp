// SPDX-License-Identifier: MIT
#include "tools/doctor/command/questions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

#include "tools/doctor/command/refusals.hpp"
#include "tools/doctor/command/treatments.hpp"
#include "tools/doctor/report/format.hpp"
#include "tools/doctor/report/words.hpp"
#include "tools/doctor/run/child.hpp"
#include "tools/doctor/run/launch.hpp"
#include "tools/support/interrupts.hpp"
#include "tools/support/library.hpp"
#include "tools/support/shell.hpp"

namespace freehold::doctor::command {
namespace {
using namespace report;

// Names the question that the trials still have to answer.
std::string still_open(const Activity& activity) {
  using doctor::Doubt;
  if (activity.open == Doubt::kNone) return {};
  const std::string what = activity.suspected == doctor::Cause::kUndecided
                               ? "the cause"
                               : fmt::format("whether it is {}", text_of(activity.suspected));
  return fmt::format("still open: {}{}; ", what, activity.open == Doubt::kBusyMachine ? ", beside other programs" : "");
}

std::string activity_text(const Activity& activity, const std::string& program) {
  switch (activity.kind) {
    case Activity::Kind::kReadMachine: return "the machine";
    case Activity::Kind::kFirstRun: return fmt::format("first run of {}, {}", program, describe(activity.setting));
    case Activity::Kind::kCountAllocations: return "counting allocations";
    case Activity::Kind::kRecordSwitched: return "recording with " + activity.variant;
    case Activity::Kind::kReadRecording: return "reading what was recorded";
    case Activity::Kind::kTrial: break;
  }
  return fmt::format("{}round {}: {}, {}{}", still_open(activity), activity.round, activity.variant,
                     describe(activity.setting),
                     activity.recorded  ? ", recorded"
                     : activity.sampled ? ", sampled"
                     : activity.delayed ? ", calls delayed"
                                        : "");
}

std::string note_text(const Note& note) {
  switch (note.kind) {
    case Note::Kind::kRecordedRunFailed:
      return fmt::format("The recorded run, {}, failed: {}.", describe(note.setting), printable(note.why));
    case Note::Kind::kRecordingUnreadable:
      return fmt::format("A process's recording could not be read: {}.", printable(note.why));
    case Note::Kind::kTookPrecedence:
      return "Others took CPUs from the program, so its runs went before them from then on, with real-time priority or at "
             "nice -20.";
    case Note::Kind::kNothingRecorded: break;
  }
  return fmt::format(
      "Nothing was recorded with {}: libfreehold-probe.so was not loaded, as by a static program, or found no "
      "room for its files. TMPDIR names another folder for them.",
      describe(note.setting));
}

// Notes say what is not there.
doctor::Tools tools_for(const std::set<std::string>& files, const std::optional<std::string>& allocators,
                        std::vector<std::string>& notes) {
  const MallocOrigin origin = malloc_origin(files);
  const auto cpus = static_cast<unsigned>(doctor::cpus_in_order().size());
  doctor::Tools tools;
  tools.variants = variants_of(allocators, origin, cpus, notes);
  tools.takes_switches = !origin.built_in && !allocators;
  tools.probe = find_probe(origin, notes);
  if (tools.probe.empty()) return tools;
  try {
    tools.delay = find_own_library("libfreehold-pad.so");
  } catch (const Failure&) {
    // A note says so of padding already.
  }
  return tools;
}

Diagnosis diagnosis_of(const TimeRequest& request, doctor::Outcome outcome, std::vector<std::string> notes) {
  Diagnosis diagnosis;
  diagnosis.settings = request.program.settings;
  diagnosis.program = request.program.program;
  diagnosis.example = request.example;
  diagnosis.signal = outcome.signal;
  diagnosis.experiment = std::move(outcome.experiment);
  for (auto& cell : diagnosis.experiment.cells) cell.failure = printable(cell.failure);
  diagnosis.recorded = std::move(outcome.recorded);
  diagnosis.recorded_alone = std::move(outcome.recorded_alone);
  diagnosis.recorded_trial = outcome.recorded_trial;
  diagnosis.recorded_alone_trial = outcome.recorded_alone_trial;
  diagnosis.profile = std::move(outcome.profile);
  diagnosis.spins_at = std::move(outcome.spins_at);
  diagnosis.contended_at = std::move(outcome.contended_at);
  diagnosis.verdict = std::move(outcome.verdict);
  diagnosis.own_allocators = std::move(outcome.own_allocators);
  diagnosis.notes = std::move(notes);
  for (const Note& note : outcome.notes) diagnosis.notes.push_back(note_text(note));
  diagnosis.repetitions = repetitions_of(diagnosis, outcome.cpus);
  return diagnosis;
}

// "env LD_PRELOAD=/x.so taskset -c 0 ./prog"
std::string shell_line(const Settings& settings, const doctor::Command& command, const LaunchOptions& options) {
  std::string line;
  for (const auto& [name, value] : options.environment) line += ' ' + shell_word(name + '=' + value);
  std::string preload = options.preload.empty() ? "" : std::getenv("LD_PRELOAD") != nullptr ? std::getenv("LD_PRELOAD") : "";
  for (auto library = options.preload.rbegin(); library != options.preload.rend(); ++library)
    preload = preload_value(*library, preload.c_str());
  if (!preload.empty()) line += ' ' + shell_word("LD_PRELOAD=" + preload);
  if (!line.empty()) line = "env" + line + ' ';
  if (!options.cpus.empty()) line += fmt::format("taskset -c {} ", fmt::join(options.cpus, ","));
  line += shell_words(command.arguments);
  if (!settings.input.empty()) line += " < " + shell_word(settings.input);
  return line;
}

std::string shell_text(const Settings& settings, const doctor::Command& command, const std::vector<LaunchOptions>& copies) {
  if (copies.size() == 1) return shell_line(settings, command, copies.front());
  std::string text;
  for (const LaunchOptions& options : copies) text += shell_line(settings, command, options) + " & ";
  return text + "wait";
}

}  // namespace

std::vector<Repetition> repetitions_of(const Diagnosis& diagnosis, const std::vector<unsigned>& cpus) {
  std::vector<Repetition> repetitions;
  for (const Cell& cell : diagnosis.experiment.cells) {
    const auto command = freehold::doctor::command_of(diagnosis.settings, diagnosis.program, cell.setting);
    const auto copies =
        doctor::launch_options_of(diagnosis.settings, diagnosis.experiment.variants[cell.variant], cell.setting, cpus);
    repetitions.push_back({.what = describe(diagnosis.experiment, cell.variant, cell.setting),
                           .shell = shell_text(diagnosis.settings, command, copies)});
  }
  return repetitions;
}

Diagnosis ask(const TimeRequest& request) {
  Interrupts interrupts;
  Progress progress;
  const Settings& settings = request.program.settings;
  const std::string program = printable(settings.command.front());
  const double begin = doctor::now_s();
  const Machine machine = this_machine();
  const std::string date = today();
  const auto show = [&](const std::string& what, double seconds_left) {
    progress.show(seconds_left > 0 ? fmt::format("{}  ({} left)", what, duration_text(seconds_left)) : what);
  };
  std::vector<std::string> notes;
  const doctor::Caller caller{
      .host = {.mask = interrupts.original_mask(), .stop_fd = interrupts.fd()},
      .show = [&](const Activity& activity) { show(activity_text(activity, program), activity.seconds_left); },
      .tools = [&](const std::set<std::string>& files) { return tools_for(files, request.allocators, notes); },
      .signal = [&interrupts] { return interrupts.arrived(); }};
  try {
    doctor::Outcome outcome = doctor::examine(request.program, caller);
    Diagnosis diagnosis = diagnosis_of(request, std::move(outcome), std::move(notes));
    diagnosis.machine = machine;
    diagnosis.date = date;
    diagnosis.seconds = doctor::now_s() - begin;
    return diagnosis;
  } catch (const Refused& refused) {
    throw failure_of(refused, program, settings, interrupts.arrived());
  }
}

}  // namespace freehold::doctor::command
