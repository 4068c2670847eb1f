// freehold scale: the classic scaling experiment, under one allocator or several. Does work that allocates get faster with
// more threads, as it does with more processes? docs/scale.md explains the workloads, the method and the exit codes.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.hpp"
#include "cli/report/result_files.hpp"
#include "cli/scale/experiment.hpp"
#include "cli/scale/page.hpp"
#include "cli/scale/results_json.hpp"
#include "cli/scale/table.hpp"
#include "cli/scale/via_pool.hpp"
#include "cli/support/arguments.hpp"
#include "cli/support/failure.hpp"
#include "cli/support/interrupts.hpp"
#include "cli/support/progress.hpp"
#include "cli/support/standard_streams.hpp"

namespace freehold::cli {
namespace {
using namespace scale;

struct ScaleOptions {
  std::optional<std::string> allocators;
  std::optional<std::string> workers;
  std::optional<std::string> iterations;
  std::optional<std::string> repeat;
  std::optional<std::string> milliseconds;
  std::optional<std::string> tests;
  std::optional<std::string> modes;
  std::optional<std::string> via;
  ResultFiles files;
  bool quick = false;
};

constexpr std::uint32_t kArticlesIterations = 24;
constexpr std::uint32_t kQuickMilliseconds = 60;

// What was asked for, or the system's allocator beside Freehold if it can be found.
std::vector<Allocator> chosen_allocators(const ScaleOptions& options, std::vector<std::string>& notes) {
  std::vector<Allocator> allocators;
  if (options.allocators) {
    for (const std::string& text : split_list("--allocator", *options.allocators))
      allocators.push_back(find_allocator(text));
    return allocators;
  }
  allocators.push_back(find_allocator("system"));
  try {
    allocators.push_back(find_allocator("freehold"));
  } catch (const Failure& failure) {
    notes.push_back(fmt::format("Without Freehold: {}.", failure.what()));
  }
  return allocators;
}

std::uint32_t chosen_iterations(const ScaleOptions& options, std::uint32_t most_workers) {
  const std::uint32_t rounded_up = (most_workers + kArticlesIterations - 1) / kArticlesIterations * kArticlesIterations;
  if (!options.iterations) return rounded_up;
  const std::uint32_t iterations = parse_number("--iterations", *options.iterations, 1, 100'000);
  if (iterations < most_workers) {
    throw Failure(kExitRefused, fmt::format("--iterations: {} cannot be shared by {} workers", iterations, most_workers));
  }
  return iterations;
}

Settings settings_of(const ScaleOptions& options, std::vector<std::string>& notes) {
  Settings settings;
  settings.subjects = subjects_of(chosen_allocators(options, notes));
  if (options.workers) settings.workers = parse_workers(*options.workers);
  if (options.via) {
    if (*options.via != name_of(Mode::kPool))
      throw Failure(kExitRefused, fmt::format("--via: '{}' is not pool", printable(*options.via)));
    settings.modes.push_back(Mode::kPool);
    settings.tests.assign(kPoolWorkloads.begin(), kPoolWorkloads.end());
  }
  if (options.tests) settings.tests = parse_tests(*options.tests);
  if (options.modes) settings.modes = parse_modes(*options.modes);
  if (std::ranges::count(settings.modes, Mode::kPool) > 0 && settings.workers.back() > kMostPoolWorkers)
    throw Failure(kExitRefused, fmt::format("--workers: a pool has {} at most", kMostPoolWorkers));
  settings.iterations = chosen_iterations(options, settings.workers.back());
  if (options.quick) {
    settings.repeat = 1;
    settings.milliseconds = kQuickMilliseconds;
  }
  if (options.repeat) settings.repeat = parse_number("--repeat", *options.repeat, 1, 1000);
  if (options.milliseconds) settings.milliseconds = parse_number("--time", *options.milliseconds, 1, 60'000);
  if (cells_of(settings).empty()) {
    throw Failure(
        kExitRefused,
        "--mode: isolation and handover are tests of threads, memory is none of a pool; nothing is left to measure");
  }
  return settings;
}

int run_scale(const ScaleOptions& options) {
  open_standard_files();
  std::vector<std::string> notes;
  const Settings settings = settings_of(options, notes);
  options.files.check();
  int signal = 0;
  Results results;
  {
    Interrupts interrupts;
    Progress progress;
    results = run_experiment(settings, interrupts, [&](const Step& step) { progress.show(step.done, step.of, step.what); });
    signal = interrupts.arrived();
  }
  results.notes.insert(results.notes.begin(), notes.begin(), notes.end());
  const Verdict verdict = verdict_of(results);
  options.files.write(results_json(results, verdict), page_of, table_of(results, verdict));
  if (signal != 0) return 128 + signal;
  const bool failed = std::ranges::any_of(results.series, [](const Series& series) { return !series.failure.empty(); });
  return failed ? kExitPartial : 0;
}

}  // namespace

void add_scale(CLI::App& app, Invocation& invocation) {
  static ScaleOptions options;
  CLI::App* command = app.add_subcommand("scale", "Measure how allocators scale: threads against processes");
  command
      ->add_option("--allocator", options.allocators,
                   "system, freehold, jemalloc, tcmalloc, tbbmalloc, mimalloc, /path/to/lib.so or NAME=PATH "
                   "[system,freehold]")
      ->type_name("LIST");
  command->add_option("--workers", options.workers, "Numbers of workers [1,2,3,4,6]")->type_name("LIST");
  command->add_option("--iterations", options.iterations, "Iterations that the workers share [24]")->type_name("N");
  command->add_option("--repeat", options.repeat, "Sets of measurements, for medians [3]")->type_name("N");
  command->add_option("--time", options.milliseconds, "Milliseconds of work for one worker in a measurement [150]")
      ->type_name("MS");
  command
      ->add_option("--test", options.tests, "compute, allocate, mixed, memory, locked, isolation, handover [all but locked]")
      ->type_name("LIST");
  command->add_option("--mode", options.modes, "threads, processes, pool [threads,processes]")->type_name("LIST");
  command->add_option("--via", options.via, "pool: also through a pool of worker processes; tests compute, allocate, locked")
      ->type_name("pool");
  command->add_flag("--quick", options.quick, "A glance: one set, 60 ms each");
  options.files.add_options(*command);
  command->footer("Ctrl-C ends it early and keeps what was finished. docs/scale.md explains the workloads and the method.");
  command->callback([&invocation] { invocation.exit_code = run_scale(options); });
}

}  // namespace freehold::cli
