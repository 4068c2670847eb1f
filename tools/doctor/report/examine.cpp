// SPDX-License-Identifier: MIT
#include "tools/doctor/report/examine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>

#include "tools/doctor/report/variants.hpp"
#include "tools/doctor/report/verdict_text.hpp"
#include "tools/doctor/run/child.hpp"
#include "tools/doctor/run/launch.hpp"
#include "tools/support/library.hpp"
#include "tools/support/shell.hpp"

namespace freehold::doctor::report {
namespace {

// What the trials go on for.
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
      "room for its files. TMPDIR or --keep-recording names another folder for them.",
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

Diagnosis diagnosis_of(const DoctorRequest& request, doctor::Outcome outcome, std::vector<std::string> notes) {
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
  for (const OwnAllocator& own : diagnosis.own_allocators) {
    if (own.reached.value_or(0) < 1) diagnosis.notes.push_back(text_of(own, diagnosis));
  }
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
    const auto command = doctor::command_of(diagnosis.settings, diagnosis.program, cell.setting);
    const auto copies =
        doctor::launch_options_of(diagnosis.settings, diagnosis.experiment.variants[cell.variant], cell.setting, cpus);
    repetitions.push_back({.what = describe(diagnosis.experiment, cell.variant, cell.setting),
                           .shell = shell_text(diagnosis.settings, command, copies)});
  }
  return repetitions;
}

Diagnosis examine(const DoctorRequest& request, Interrupts& interrupts, Progress& progress) {
  const Settings& settings = request.program.settings;
  const std::string program = printable(settings.command.front());
  const double begin = doctor::now_s();
  const Machine machine = this_machine();
  const std::string date = today();
  const auto show = [&](const std::string& what, double seconds_left) {
    if (settings.show_output) return;  // of the program, on the same terminal
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
    progress.wipe();
    return diagnosis;
  } catch (const Refused& refused) {
    throw failure_of(refused, program, settings, interrupts.arrived());
  }
}

Failure failure_of(const Refused& refused, const std::string& program, const Settings& settings, int signal) {
  const std::string detail = printable(refused.detail()), more = printable(refused.more());
  const auto refuse = [](const std::string& line) { return Failure(kExitRefused, line); };
  switch (refused.why()) {
    case Refusal::kNotExecutable: return {kExitCannotExecute, fmt::format("cannot execute {}: {}", program, detail)};
    case Refusal::kFails:
      return refuse(fmt::format("{} fails as it is: {}{}{}; to examine it all the same: --allow-failure", program, detail,
                                more.empty() ? "" : ": ", more));
    case Refusal::kFailsLater: return refuse(fmt::format("{} works once and then no more: {}", program, detail));
    case Refusal::kNoEnd:
      return refuse(
          fmt::format("{} did not end within {:.0f} s; if it serves until it is told to end, say how long it "
                      "shall: --for 10s --load 'COMMAND'; if it takes so long, give it time: --budget {:.0f}",
                      program, refused.seconds(), 10 * refused.seconds()));
    case Refusal::kNoEndOfLoad:
      return refuse(
          fmt::format("the load of {} did not end within {:.0f} s; end it with --for 10s", program, refused.seconds()));
    case Refusal::kNotReady:
      return refuse(
          fmt::format("{} did not become ready: no socket of its listens{}; say when it is: --ready-after SECONDS "
                      "or --ready 'COMMAND'",
                      program, settings.server.ready.empty() ? "" : ", or the command of --ready fails"));
    case Refusal::kHidden:
      return refuse(
          fmt::format("{} does not let its memory be read: it forbids core dumps (PR_SET_DUMPABLE), or has rights that you "
                      "have not; run freehold {}",
                      program, ::geteuid() == 0 ? "with the right CAP_SYS_PTRACE" : "as root"));
    case Refusal::kTooShort:
      return refuse(fmt::format("{} ended before its memory could be read; give it more to do", program));
    case Refusal::kInterruptedAtFirst: return {128 + signal, "interrupted before the program had ended for the first time"};
    case Refusal::kInterruptedTooEarly: return {128 + signal, "interrupted before there was anything to tell"};
    case Refusal::kNoFolder: return refuse(fmt::format("cannot make {}: {}", detail, more));
    case Refusal::kNoTemporaryFolder:
      return refuse(fmt::format("no folder for recordings in {}: {}; set TMPDIR", detail, more));
    case Refusal::kFolderNotEmpty: return refuse(fmt::format("--keep-recording: {} is not empty", detail));
  }
  __builtin_unreachable();
}

}  // namespace freehold::doctor::report
