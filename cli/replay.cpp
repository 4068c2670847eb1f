// SPDX-License-Identifier: MIT
// freehold replay: measures what an allocation site of a recorded program would cost with each of Freehold's pools and
// heaps. docs/replay.md explains the method and the files.
#include <filesystem>
#include <optional>

#include "cli/command.hpp"
#include "cli/replay/advice.hpp"
#include "cli/replay/trace_json.hpp"
#include "cli/report/json.hpp"
#include "cli/support/arguments.hpp"
#include "cli/support/interrupts.hpp"
#include "cli/support/output_file.hpp"

namespace freehold::cli {
namespace {
using namespace replay;

struct ReplayOptions {
  std::string source;
  std::optional<std::string> repeat, json, save;
};

int run_replay(const ReplayOptions& options) {
  open_standard_files();
  ReplaySettings settings;
  if (options.repeat) settings.repeat = parse_number("--repeat", *options.repeat, 1, 1000);
  check_report(options.json);
  if (options.save) check_writable(*options.save);
  if (options.json && options.save) check_different({{"--json", *options.json}, {"--save", *options.save}});
  std::error_code none;
  const auto traces = std::filesystem::is_directory(options.source, none) ? traces_of_recordings(options.source)
                                                                          : read_traces(options.source);
  if (options.save) {
    write_file(*options.save, replay::json_of(traces).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n');
    if (!options.json && !options.repeat) return 0;
  }
  Advice advice;
  int signal = 0;
  {
    Interrupts interrupts;
    advice = advice_of(traces, settings, [&] { return interrupts.arrived() != 0; });
    signal = interrupts.arrived();
  }
  const nlohmann::ordered_json json{{"format", "freehold-replay"},
                                    {"version", 1},
                                    {"date", today()},
                                    {"machine", machine_json(this_machine())},
                                    {"advice", replay::json_of(advice)}};
  write_report(options.json, text_of(json), table_of(advice));
  return signal != 0 ? 128 + signal : 0;
}

}  // namespace

void add_replay(CLI::App& app, Invocation& invocation) {
  static ReplayOptions options;
  Command command(app, "replay", "Replay a recorded program's allocations through every pool and heap, and give advice");
  command.add_required_word("TRACE", options.source, "Trace file, or the folder of freehold doctor --keep-recording");
  command.add_option("--repeat", options.repeat, "Number of sets of measurements, for medians [5]", "N");
  command.add_option("--json", options.json, "Write the results as JSON; - for standard output", "FILE");
  command.add_option("--save", options.save, "Write the trace to a file; replays it only with --repeat or --json", "FILE");
  command.footer("docs/replay.md explains the method and the files.");
  command.on_use([&invocation] { invocation.exit_code = run_replay(options); });
}

}  // namespace freehold::cli
