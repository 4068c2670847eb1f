// freehold simulate: Freehold's malloc on 1 to 256 simulated cores, counted in coherence misses and lock hand-overs.
// docs/simulate.md explains the workloads and how to read the table.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.hpp"
#include "cli/report/json.hpp"
#include "cli/simulate/results_json.hpp"
#include "cli/simulate/simulation.hpp"
#include "cli/simulate/table.hpp"
#include "cli/support/arguments.hpp"
#include "cli/support/failure.hpp"
#include "cli/support/interrupts.hpp"
#include "cli/support/output_file.hpp"
#include "cli/support/progress.hpp"
#include "cli/support/standard_streams.hpp"

namespace freehold::cli {
namespace {
using namespace simulate;

struct SimulateOptions {
  std::optional<std::string> workloads;
  std::optional<std::string> sizes;
  std::optional<std::string> cores;
  std::optional<std::string> quantum;
  std::optional<std::string> pairs;
  std::optional<std::string> places;
  std::optional<std::string> json;
};

std::optional<EngineWorkload> workload_of(std::string_view name) {
  return value_of<EngineWorkload>(sim::kEngineWorkloads, name);
}

Settings settings_of(const SimulateOptions& options) {
  Settings settings;
  if (options.workloads)
    settings.workloads = parse_names<EngineWorkload>("--workload", *options.workloads, sim::kEngineWorkloads, workload_of);
  if (options.sizes) settings.sizes = parse_numbers("--size", *options.sizes, 1, sim::kMaxEngineBytes);
  if (options.cores) settings.cores = parse_numbers("--cores", *options.cores, 1, sim::kMaxCores);
  if (options.quantum) settings.quantum = parse_number("--quantum", *options.quantum, 1, 1'000'000);
  if (options.pairs) settings.pairs = parse_number("--pairs", *options.pairs, 1, 1'000'000);
  if (options.places) settings.places = parse_number("--places", *options.places, 1, 1000);
  return settings;
}

int run_simulate(const SimulateOptions& options) {
  open_standard_files();
  const Settings settings = settings_of(options);
  const bool to_stdout = options.json == "-";
  if (options.json && !to_stdout) check_writable(*options.json);
  int signal = 0;
  Results results;
  {
    Interrupts interrupts;
    Progress progress;
    results = run(settings, interrupts, progress);
    signal = interrupts.arrived();
  }
  // The file first: a terminal that went away must not cost it.
  if (options.json && !to_stdout) write_file(*options.json, text_of(results_json(results)));
  print_to_stdout(to_stdout ? text_of(results_json(results)) : table_of(results));
  return signal != 0 ? 128 + signal : 0;
}

}  // namespace

void add_simulate(CLI::App& app, Invocation& invocation) {
  static SimulateOptions options;
  CLI::App* command =
      app.add_subcommand("simulate", "Count Freehold's coherence misses and lock hand-overs on 1 to 256 simulated cores");
  command->add_option("--workload", options.workloads, "own, many, neighbour, producer, churn, purge [all]")
      ->type_name("LIST");
  command->add_option("--size", options.sizes, "Bytes of a block [16,64,512,4096,32768,65536,262144,1048576]")
      ->type_name("LIST");
  command->add_option("--cores", options.cores, "Numbers of simulated cores [1,2,4,8,16,32,64,128,256]")->type_name("LIST");
  command->add_option("--quantum", options.quantum, "Accesses to memory after which another core goes on [1]")
      ->type_name("N");
  command->add_option("--pairs", options.pairs, "Blocks that each core frees while it is counted [by the size]")
      ->type_name("N");
  command->add_option("--places", options.places, "Also name the N places in the source with the most misses")
      ->type_name("N");
  command->add_option("--json", options.json, "Write everything that was counted as JSON; - for standard output")
      ->type_name("FILE");
  command->footer("Ctrl-C ends it early and keeps what was finished. docs/simulate.md explains how to read the table.");
  command->callback([&invocation] { invocation.exit_code = run_simulate(options); });
}

}  // namespace freehold::cli
