// freehold pools: the experiments of two articles about pools of fixed-size slots, on every pool that Freehold has and on
// those of libraries. docs/pools.md explains the tests and the method.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.hpp"
#include "cli/pools/experiment.hpp"
#include "cli/pools/page.hpp"
#include "cli/pools/results_json.hpp"
#include "cli/pools/table.hpp"
#include "cli/report/result_files.hpp"
#include "cli/support/arguments.hpp"
#include "cli/support/failure.hpp"
#include "cli/support/interrupts.hpp"
#include "cli/support/progress.hpp"
#include "cli/support/standard_streams.hpp"

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
  std::optional<std::string> repeat;
  std::optional<std::string> milliseconds;
  ResultFiles files;
  bool simulate = false;
  bool quick = false;
  bool list = false;
};

constexpr std::uint32_t kMostThreads = 256;

void add_numbers(const PoolsOptions& options, Settings& settings) {
  const auto number = [](const auto& text, const char* option, std::uint32_t least, std::uint32_t most, auto& value) {
    if (text) value = parse_number(option, *text, least, most);
  };
  number(options.threads, "--threads", 1, kMostThreads, settings.threads);
  number(options.operations, "--operations", 1, 100'000'000, settings.operations);
  number(options.slot_bytes, "--slot-bytes", 4, 1 << 16, settings.slot_bytes);
  number(options.repeat, "--repeat", 1, 1000, settings.repeat);
  number(options.milliseconds, "--time", 1, 60'000, settings.milliseconds);
  number(options.crc_reads, "--crc-reads", 1, 1000, settings.crc_reads);
  if (options.crc_pools) settings.crc_pools = parse_numbers("--crc-pools", *options.crc_pools, 1, kMostThreads);
  if (options.crc_threads) settings.crc_threads = parse_numbers("--crc-threads", *options.crc_threads, 2, kMostThreads);
}

Settings settings_of(const PoolsOptions& options) {
  Settings settings;
  if (options.pools) {
    settings.pools = parse_pools(*options.pools);
  } else {
    for (const Contender& contender : contenders()) settings.pools.push_back(&contender);
  }
  settings.simulate = options.simulate;
  if (options.simulate) settings.tests.clear();
  if (options.tests) settings.tests = parse_names<Trial>("--tests", *options.tests, kTests, test_of);
  if (options.contexts) settings.contexts = parse_names<Context>("--contexts", *options.contexts, kContexts, context_of);
  if (options.quick) {
    settings.repeat = 1;
    settings.milliseconds = 40;
    settings.operations = 100'000;
  }
  add_numbers(options, settings);
  if (cells_of(settings).empty() && !options.simulate)
    throw Failure(kExitRefused,
                  "--pools: the floor takes part in fresh tests within one thread only; nothing is left to measure");
  return settings;
}

int run_pools(const PoolsOptions& options) {
  open_standard_files();
  if (options.list) {
    print_to_stdout(list_of_contenders());
    return 0;
  }
  const Settings settings = settings_of(options);
  options.files.check();
  int signal = 0;
  Results results;
  {
    Interrupts interrupts;
    Progress progress;
    results = run_experiment(settings, interrupts, progress);
    signal = interrupts.arrived();
  }
  options.files.write(results_json(results), page_of, table_of(results));
  if (signal != 0) return 128 + signal;
  const bool failed = std::ranges::any_of(results.series, [](const Series& series) { return !series.failure.empty(); });
  return failed ? kExitPartial : 0;
}

}  // namespace

void add_pools(CLI::App& app, Invocation& invocation) {
  static PoolsOptions options;
  CLI::App* command = app.add_subcommand("pools", "Measure pools of fixed-size slots: the two articles' experiments");
  command->add_flag("--list", options.list, "Name all pools and where they come from");
  command->add_option("--pools", options.pools, "Which of them [all]")->type_name("LIST");
  command->add_option("--tests", options.tests, "short, long, single, random, ring, pair, crc [all]")->type_name("LIST");
  command->add_option("--contexts", options.contexts, "fresh, polluted, half, full [all]")->type_name("LIST");
  command->add_option("--threads", options.threads, "Threads [8]")->type_name("N");
  command->add_option("--operations", options.operations, "Acquires and releases of each thread [1000000]")->type_name("N");
  command->add_option("--slot-bytes", options.slot_bytes, "Bytes of a slot [12]")->type_name("BYTES");
  command->add_option("--crc-threads", options.crc_threads, "Threads of the test crc [8,16,32]")->type_name("LIST");
  command->add_option("--crc-pools", options.crc_pools, "Numbers of pools that slots are distributed over [1,2,4,8,16]")
      ->type_name("LIST");
  command->add_option("--crc-reads", options.crc_reads, "Buffers of the test crc that are read for each that is written [4]")
      ->type_name("N");
  command->add_option("--repeat", options.repeat, "Sets of measurements, for medians [5]")->type_name("N");
  command->add_option("--time", options.milliseconds, "Milliseconds after which a test ends, with fewer operations [150]")
      ->type_name("MS");
  command->add_flag("--simulate", options.simulate,
                    "Count coherence misses on 1 to 256 simulated cores; measures only the --tests that are named");
  command->add_flag("--quick", options.quick, "A glance: one set, 100000 operations, 40 ms each");
  options.files.add_options(*command);
  command->footer("Ctrl-C ends it early and keeps what was finished. docs/pools.md explains the tests and the method.");
  command->callback([&invocation] { invocation.exit_code = run_pools(options); });
}

}  // namespace freehold::cli
