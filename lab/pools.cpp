// SPDX-License-Identifier: MIT
// freehold pools: the experiments of two articles about pools of fixed-size slots. Measures every pool of Freehold and some
// of other libraries. docs/pools-compare.md explains the tests and the method.
#include <optional>

#include "cli/experiments.hpp"
#include "cli/support/output_file.hpp"
#include "lab/experiment/command.hpp"
#include "lab/laboratory.hpp"
#include "lab/pools/experiment.hpp"

namespace freehold::cli {
namespace {
using namespace pools;

struct PoolsOptions {
  std::optional<std::string> pools;
  std::optional<std::string> tests;
  std::optional<std::string> contexts;
  std::optional<std::string> threads;
  std::optional<std::string> operations;
  std::optional<std::string> slot_bytes;
  std::optional<std::string> crc_threads;
  std::optional<std::string> crc_pools;
  std::optional<std::string> crc_reads;
  ExperimentOptions experiment;
  bool simulate = false;
  bool list = false;
};

constexpr std::uint32_t kMostThreads = 256;
constexpr std::uint32_t kQuickMilliseconds = 40;

void add_numbers(const PoolsOptions& options, Settings& settings) {
  parse_into(settings.threads, "--threads", options.threads, 1, kMostThreads);
  parse_into(settings.operations, "--operations", options.operations, 1, 100'000'000);
  parse_into(settings.slot_bytes, "--slot-bytes", options.slot_bytes, 4, 1 << 16);
  parse_into(settings.crc_reads, "--crc-reads", options.crc_reads, 1, 1000);
  if (options.crc_pools) settings.crc_pools = parse_numbers("--crc-pools", *options.crc_pools, 1, kMostThreads);
  if (options.crc_threads) settings.crc_threads = parse_numbers("--crc-threads", *options.crc_threads, 2, kMostThreads);
}

Settings settings_of(const PoolsOptions& options) {
  Settings settings;
  settings.pools = options.pools ? parse_pools(*options.pools) : pointers_to(candidates());
  settings.simulate = options.simulate;
  if (options.simulate) settings.tests.clear();
  if (options.tests) settings.tests = parse_names<Trial>("--tests", *options.tests, kTests);
  if (options.contexts) settings.contexts = parse_names<Context>("--contexts", *options.contexts, kContexts);
  options.experiment.apply(settings, kQuickMilliseconds);
  if (options.experiment.quick) settings.operations = 100'000;
  add_numbers(options, settings);
  if (cells_of(settings).empty() && !options.simulate)
    throw Failure(kExitRefused,
                  "--pools: there is nothing to measure; the baseline runs only in tests of fresh pools without hand-over");
  return settings;
}

int run_pools(const PoolsOptions& options) {
  open_standard_files();
  if (options.list) return print_list(candidates());
  return run_command(options.experiment.files, settings_of(options), run_experiment, write_results);
}

}  // namespace

void add_pools(CLI::App& app, Invocation& invocation) {
  static PoolsOptions options;
  Command command(app, "pools", find_experiment("pools")->summary);
  command.add_flag("--list", options.list, "List all pools and where they come from");
  command.add_option("--pools", options.pools, "Pools to measure [all]", "LIST");
  command.add_option("--tests", options.tests, "short, long, single, random, ring, pair, crc [all]", "LIST");
  command.add_option("--contexts", options.contexts, "fresh, polluted, half, full: state of the pool at the start [all]",
                     "LIST");
  command.add_option("--threads", options.threads, "Number of threads [8]", "N");
  command.add_option("--operations", options.operations, "Acquires and releases of each thread [1000000]", "N");
  command.add_option("--slot-bytes", options.slot_bytes, "Size of a slot [12]", "BYTES");
  command.add_option("--crc-threads", options.crc_threads, "Numbers of threads in the test crc [8,16,32]", "LIST");
  command.add_option("--crc-pools", options.crc_pools, "Numbers of pools that share the slots in the test crc [1,2,4,8,16]",
                     "LIST");
  command.add_option("--crc-reads", options.crc_reads, "Buffers read for each buffer written in the test crc [4]", "N");
  command.add_flag("--simulate", options.simulate,
                   "Count coherence misses on 1 to 256 simulated cores; measure only the --tests given");
  options.experiment.add_to(command, {.sets = "5",
                                      .time = "Time limit of a test; it then ends with fewer operations [150]",
                                      .quick = "Short run: one set, 100000 operations, 40 ms for each test",
                                      .page = "docs/pools-compare.md explains the tests and the method."});
  command.on_use([&invocation] { invocation.exit_code = run_pools(options); });
}

}  // namespace freehold::cli
