// SPDX-License-Identifier: MIT
// freehold simulate: runs Freehold's malloc on 1 to 384 simulated cores and counts coherence misses and lock hand-overs.
// docs/simulate.md explains the workloads and how to read the table.
#include <optional>

#include "cli/experiments.hpp"
#include "cli/support/output_file.hpp"
#include "lab/experiment/command.hpp"
#include "lab/laboratory.hpp"
#include "lab/simulate/simulation.hpp"

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
  std::optional<std::string> nodes;
  std::optional<std::string> far_cost;
  ResultFiles files;
};

Settings settings_of(const SimulateOptions& options) {
  Settings settings;
  if (options.workloads)
    settings.workloads = parse_names<EngineWorkload>("--workload", *options.workloads, sim::kEngineWorkloads);
  if (options.sizes) settings.sizes = parse_numbers("--size", *options.sizes, 1, sim::kMaxEngineBytes);
  if (options.cores) settings.cores = parse_numbers("--cores", *options.cores, 1, sim::kMaxCores);
  parse_into(settings.quantum, "--quantum", options.quantum, 1, 1'000'000);
  parse_into(settings.pairs, "--pairs", options.pairs, 1, 1'000'000);
  parse_into(settings.places, "--places", options.places, 1, 1000);
  parse_into(settings.nodes, "--nodes", options.nodes, 1, sim::kMaxCores);
  parse_into(settings.far_cost, "--far-cost", options.far_cost, 100, 1000);
  return settings;
}

int run_simulate(const SimulateOptions& options) {
  open_standard_files();
  return run_command(options.files, settings_of(options), run, write_results);
}

}  // namespace

void add_simulate(CLI::App& app, Invocation& invocation) {
  static SimulateOptions options;
  Command command(app, "simulate", find_experiment("simulate")->summary);
  command.add_option("--workload", options.workloads, "own, many, neighbour, producer, churn, purge [all]", "LIST");
  command.add_option("--size", options.sizes, "Sizes of a block [16,64,512,4096,32768,65536,262144,1048576]", "LIST");
  command.add_option("--cores", options.cores, "Numbers of simulated cores [1,2,4,8,16,32,64,128,256]", "LIST");
  command.add_option("--quantum", options.quantum, "Accesses to memory before another core gets its turn [1]", "N");
  command.add_option("--pairs", options.pairs, "Number of blocks that each core frees while it is counted [by the size]",
                     "N");
  command.add_option("--places", options.places, "List the N places in the source with the most misses, too", "N");
  command.add_option("--nodes", options.nodes, "Memory nodes of the machine: count lines that another one serves [1]", "N");
  command.add_option("--far-cost", options.far_cost, "What such a line costs, in percent of one at home [250]", "N");
  options.files.add_json(command);
  command.footer(
      "Ctrl-C ends the simulation early and keeps the finished counts. docs/simulate.md explains how to read the table.");
  command.on_use([&invocation] { invocation.exit_code = run_simulate(options); });
}

}  // namespace freehold::cli
