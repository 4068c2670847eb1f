// SPDX-License-Identifier: MIT
// freehold doctor attach PID: what can be said of a process that runs already.
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.hpp"
#include "tools/doctor/report/attached.hpp"
#include "tools/doctor/report/gate.hpp"
#include "tools/output/json.hpp"
#include "tools/support/live_process.hpp"
#include "tools/support/output_file.hpp"

namespace freehold::cli {
using namespace doctor::report;
namespace {

struct AttachOptions {
  std::optional<std::string> pid, seconds, json;
  bool count_calls = false;
};

int run_attach(const AttachOptions& options) {
  open_standard_files();
  doctor::AttachSettings settings;
  settings.pid = process_number("doctor attach", options.pid);
  if (options.seconds) settings.seconds = parse_seconds("--for", *options.seconds);
  settings.count_calls = options.count_calls;
  check_report(options.json);
  AttachedReport attached;
  {
    Interrupts interrupts;
    Progress progress;
    attached = attach(settings, interrupts, progress);
  }
  const std::string text = text_of(attached);
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
