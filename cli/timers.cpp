// freehold timers: the experiment of an article about timer queues, whose heap is what their users contend for, on every
// structure of timers that Freehold has and on those of libraries. docs/timers.md explains the tests and the method.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.hpp"
#include "cli/report/result_files.hpp"
#include "cli/support/arguments.hpp"
#include "cli/support/failure.hpp"
#include "cli/support/interrupts.hpp"
#include "cli/support/library.hpp"
#include "cli/support/progress.hpp"
#include "cli/support/standard_streams.hpp"
#include "cli/timers/experiment.hpp"
#include "cli/timers/page.hpp"
#include "cli/timers/results_json.hpp"
#include "cli/timers/table.hpp"

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
  std::optional<std::string> repeat;
  std::optional<std::string> milliseconds;
  ResultFiles files;
  bool large = false;
  bool quick = false;
  bool list = false;
};

constexpr std::uint32_t kMostTimers = 16'000'000;
constexpr std::uint32_t kLarge = 10'000'000;
constexpr std::uint32_t kMostThreads = 256;

void add_numbers(const TimersOptions& options, Settings& settings) {
  const auto number = [](const auto& text, const char* option, std::uint32_t least, std::uint32_t most, auto& value) {
    if (text) value = parse_number(option, *text, least, most);
  };
  number(options.count, "--count", 1, kMostTimers, settings.count);
  if (options.count) settings.cancelled = settings.shared = settings.count;
  number(options.background, "--background", 0, kMostThreads, settings.background);
  number(options.repeat, "--repeat", 1, 1000, settings.repeat);
  number(options.milliseconds, "--time", 1, 60'000, settings.milliseconds);
  if (options.live) settings.live = parse_numbers("--live", *options.live, 1, kMostTimers);
  if (options.large && std::ranges::count(settings.live, kLarge) == 0) settings.live.push_back(kLarge);
  std::ranges::sort(settings.live);
  if (options.users) settings.users = parse_numbers("--users", *options.users, 1, kMostThreads);
  if (settings.background == 0) std::erase_if(settings.loads, [](Load load) { return load != Load::kAlone; });
}

Settings settings_of(const TimersOptions& options) {
  Settings settings;
  if (options.structures) {
    settings.structures = parse_structures(*options.structures);
  } else {
    for (const Contender& contender : contenders()) settings.structures.push_back(&contender);
  }
  if (options.tests) settings.tests = parse_names<Trial>("--tests", *options.tests, kTests, test_of);
  if (options.quick) {
    settings.repeat = 1;
    settings.milliseconds = 10;
    settings.loads = {Load::kAlone, Load::kHeap};
    settings.count = settings.cancelled = settings.shared = 10'000;
    settings.live = {1'000, 100'000};
  }
  if (options.loads) settings.loads = parse_names<Load>("--loads", *options.loads, kLoads, load_of);
  add_numbers(options, settings);
  const std::vector<Cell> cells = cells_of(settings);
  if (cells.empty())
    throw Failure(kExitRefused, "nothing is left to measure: see freehold timers --list and docs/timers.md");
  const auto preloads = [&](const Cell& cell) { return settings.structures[cell.structure]->preloads_freehold; };
  if (std::ranges::any_of(cells, preloads)) settings.freehold_library = find_freehold_library();
  return settings;
}

int run_timers(const TimersOptions& options) {
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

void add_timers(CLI::App& app, Invocation& invocation) {
  static TimersOptions options;
  CLI::App* command = app.add_subcommand("timers", "Measure structures of timers: an article's experiment");
  command->add_flag("--list", options.list, "Name all structures and where they come from");
  command->add_option("--timers", options.structures, "Which of them [all]")->type_name("LIST");
  command
      ->add_option("--tests", options.tests, "fresh-random, fresh-ascending, random, ascending, cancel, rearm, shared [all]")
      ->type_name("LIST");
  command->add_option("--loads", options.loads, "alone, busy, heap: what other threads do [all]")->type_name("LIST");
  command->add_option("--count", options.count, "Timers of all tests but rearm [100000; cancel: 65536]")->type_name("N");
  command->add_option("--live", options.live, "Timers of the test rearm [1000,10000,100000,1000000]")->type_name("LIST");
  command->add_flag("--large", options.large, "The test rearm with 10000000 timers, too");
  command->add_option("--users", options.users, "Threads of the test shared [1,4]")->type_name("LIST");
  command->add_option("--background", options.background, "Threads of a load; 0: no loads [8]")->type_name("N");
  command->add_option("--repeat", options.repeat, "Sets of measurements, for medians [3]")->type_name("N");
  command->add_option("--time", options.milliseconds, "Milliseconds of CPU time for a measurement, about [100]")
      ->type_name("MS");
  command->add_flag("--quick", options.quick, "A glance: one set, 10000 timers, 10 ms each, no busy threads");
  options.files.add_options(*command);
  command->footer("Ctrl-C ends it early and keeps what was finished. docs/timers.md explains the tests and the method.");
  command->callback([&invocation] { invocation.exit_code = run_timers(options); });
}

}  // namespace freehold::cli
