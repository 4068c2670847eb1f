// SPDX-License-Identifier: MIT
// freehold doctor attach PID: what can be said of a process that runs already.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.hpp"
#include "tools/doctor/report/attach_answer.hpp"
#include "tools/doctor/run/attached.hpp"
#include "tools/output/json.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/interrupts.hpp"
#include "tools/support/live_process.hpp"
#include "tools/support/machine.hpp"
#include "tools/support/output_file.hpp"
#include "tools/support/quantities.hpp"

namespace freehold::cli {
namespace {

struct AttachOptions {
  std::optional<std::string> pid, seconds, json;
  bool count_calls = false;
};

using freehold::doctor::AttachNote;

std::string note_text(const AttachNote& note) {
  switch (note.kind) {
    case AttachNote::Kind::kCallsNotCounted: return fmt::format("Calls were not counted: {}.", note.why);
    case AttachNote::Kind::kNotSampled:
      return fmt::format("Where it spends its CPU time could not be sampled: {}.", note.why);
    case AttachNote::Kind::kHardlyRan: {
      std::string text = "It hardly ran: nothing can be said of where it spends its CPU time.";
      if (!note.children.empty()) text += fmt::format(" It has started others: {}.", fmt::join(note.children, ", "));
      return text;
    }
    case AttachNote::Kind::kKernelNotSampled:
      return "Time in the kernel was not sampled (kernel.perf_event_paranoid): page faults in malloc are missing.";
    case AttachNote::Kind::kSamplesLost: return fmt::format("{} samples found no room.", note.count);
    case AttachNote::Kind::kSleepersNotSeen:
      return "What its threads sleep in could not be looked at (/proc/PID/task/*/syscall).";
  }
  __builtin_unreachable();
}

// Refuses before anything is waited for.
void check(pid_t pid) {
  using freehold::live::LiveRefusal;
  if (pid == ::getpid()) throw Failure(kExitRefused, "that is the doctor itself; name another process");
  if (const LiveRefusal refusal = freehold::live::refusal_of(pid); refusal != LiveRefusal::kNone)
    throw Failure(kExitRefused, why_refused(refusal, pid, {}, 0));
}

// Throws Failure: no such process, not allowed.
doctor::report::AttachedReport attach(const freehold::doctor::AttachSettings& settings) {
  Interrupts interrupts;
  Progress progress;
  check(settings.pid);
  doctor::report::AttachedReport report;
  report.machine = this_machine();
  report.date = today();
  report.process = freehold::doctor::attach(
      settings, {.stop_fd = interrupts.fd(),
                 .signal = [&interrupts] { return interrupts.arrived(); },
                 .show_watching = [&] { progress.show(fmt::format("watching process {}", settings.pid)); },
                 .show_naming = [&] { progress.show("looking up names"); }});
  for (const AttachNote& note : report.process.notes) report.notes.push_back(note_text(note));
  return report;
}

int run_attach(const AttachOptions& options) {
  open_standard_files();
  freehold::doctor::AttachSettings settings;
  settings.pid = process_number("doctor attach", options.pid);
  if (options.seconds) settings.seconds = parse_seconds("--for", *options.seconds);
  settings.count_calls = options.count_calls;
  check_report(options.json);
  const doctor::report::AttachedReport attached = attach(settings);
  const std::string text = text_of(document_of(attached));
  write_report(options.json, text_of(json_of(attached)), text, text);
  return attached.process.signal != 0 ? 128 + attached.process.signal : 0;
}

}  // namespace

void add_doctor_attach(Command& doctor, Invocation& invocation) {
  static AttachOptions options;
  Command command = doctor.add_subcommand("attach", "What can be said of a process that runs already, without a restart");
  command.add_option("pid", options.pid, "Number of the process", "PID");
  command.add_option("--for", options.seconds, "Watch it for so long [5s]", "TIME");
  command.add_flag("--count-calls", options.count_calls, "Count calls of malloc for 0.3 s, which slows the process down");
  command.add_option("--json", options.json, "Write everything as JSON; - for standard output", "FILE");
  command.footer(
      "The process is neither stopped nor changed. Ctrl-C ends the watching, not the process. docs/doctor-attach.md");
  command.on_use([&invocation] { invocation.exit_code = run_attach(options); });
}

}  // namespace freehold::cli
