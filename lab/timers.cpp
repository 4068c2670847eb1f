// SPDX-License-Identifier: MIT
// freehold timers: the experiment of an article about timer queues whose users contend for the heap. Measures every timer
// structure of Freehold and some of other libraries. docs/timers-compare.md explains the tests and the method.
#include <algorithm>
#include <optional>

#include "cli/experiments.hpp"
#include "cli/support/library.hpp"
#include "cli/support/output_file.hpp"
#include "lab/experiment/command.hpp"
#include "lab/laboratory.hpp"
#include "lab/timers/experiment.hpp"

namespace freehold::cli {
namespace {
using namespace timers;

struct TimersOptions {
  std::optional<std::string> structures;
  std::optional<std::string> tests;
  std::optional<std::string> loads;
  std::optional<std::string> count;
  std::optional<std::string> live;
  std::optional<std::string> users;
  std::optional<std::string> background;
  ExperimentOptions experiment;
  bool large = false;
  bool list = false;
};

constexpr std::uint32_t kMostTimers = 16'000'000;
constexpr std::uint32_t kLarge = 10'000'000;
constexpr std::uint32_t kMostThreads = 256;
constexpr std::uint32_t kQuickMilliseconds = 10;

void add_numbers(const TimersOptions& options, Settings& settings) {
  parse_into(settings.count, "--count", options.count, 1, kMostTimers);
  if (options.count) settings.cancelled = settings.shared = settings.count;
  parse_into(settings.background, "--background", options.background, 0, kMostThreads);
  if (options.live) settings.live = parse_numbers("--live", *options.live, 1, kMostTimers);
  if (options.large && std::ranges::count(settings.live, kLarge) == 0) settings.live.push_back(kLarge);
  std::ranges::sort(settings.live);
  if (options.users) settings.users = parse_numbers("--users", *options.users, 1, kMostThreads);
  if (settings.background == 0) std::erase_if(settings.loads, [](Load load) { return load != Load::kAlone; });
}

Settings settings_of(const TimersOptions& options) {
  Settings settings;
  settings.structures = options.structures ? parse_structures(*options.structures) : pointers_to(candidates());
  if (options.tests) settings.tests = parse_names<Trial>("--tests", *options.tests, kTests);
  options.experiment.apply(settings, kQuickMilliseconds);
  if (options.experiment.quick) {
    settings.loads = {Load::kAlone, Load::kHeap};
    settings.count = settings.cancelled = settings.shared = 10'000;
    settings.live = {1'000, 100'000};
  }
  if (options.loads) settings.loads = parse_names<Load>("--loads", *options.loads, kLoads);
  add_numbers(options, settings);
  const std::vector<Cell> cells = cells_of(settings);
  if (cells.empty())
    throw Failure(kExitRefused, "there is nothing to measure: see freehold timers --list and docs/timers-compare.md");
  const auto preloads = [&](const Cell& cell) { return settings.structures[cell.structure]->preloads_freehold; };
  if (std::ranges::any_of(cells, preloads)) settings.freehold_library = find_freehold_library();
  return settings;
}

int run_timers(const TimersOptions& options) {
  open_standard_files();
  if (options.list) return print_list(candidates());
  return run_command(options.experiment.files, settings_of(options), run_experiment, write_results);
}

}  // namespace

void add_timers(CLI::App& app, Invocation& invocation) {
  static TimersOptions options;
  Command command(app, "timers", find_experiment("timers")->summary);
  command.add_flag("--list", options.list, "List all structures and where they come from");
  command.add_option("--timers", options.structures, "Structures to measure [all]", "LIST");
  command.add_option("--tests", options.tests,
                     "fresh-random, fresh-ascending, random, ascending, cancel, rearm, shared [all]", "LIST");
  command.add_option("--loads", options.loads, "alone, busy, heap: the work of other threads [all]", "LIST");
  command.add_option("--count", options.count, "Number of timers in all tests but rearm [100000; cancel: 65536]", "N");
  command.add_option("--live", options.live, "Numbers of timers in the test rearm [1000,10000,100000,1000000]", "LIST");
  command.add_flag("--large", options.large, "Run the test rearm with 10000000 timers, too");
  command.add_option("--users", options.users, "Numbers of threads in the test shared [1,4]", "LIST");
  command.add_option("--background", options.background, "Number of threads of a load; 0: no loads [8]", "N");
  options.experiment.add_to(command, {.sets = "3",
                                      .time = "CPU time of a measurement, about [100]",
                                      .quick = "Short run: one set, 10000 timers, 10 ms for each test, no load busy",
                                      .page = "docs/timers-compare.md explains the tests and the method."});
  command.on_use([&invocation] { invocation.exit_code = run_timers(options); });
}

}  // namespace freehold::cli
