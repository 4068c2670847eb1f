// SPDX-License-Identifier: MIT
// freehold scale: the classic scaling experiment, under one allocator or several. It answers whether work that allocates
// gets faster with more threads, as it does with more processes. docs/scale.md explains the workloads, the method and the
// exit codes.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/experiments.hpp"
#include "cli/support/output_file.hpp"
#include "lab/experiment/command.hpp"
#include "lab/laboratory.hpp"
#include "lab/scale/experiment.hpp"

namespace freehold::cli {
namespace {
using namespace scale;

struct ScaleOptions {
  std::optional<std::string> allocators;
  std::optional<std::string> workers;
  std::optional<std::string> iterations;
  std::optional<std::string> tests;
  std::optional<std::string> modes;
  std::optional<std::string> via;
  ExperimentOptions experiment;
};

constexpr std::uint32_t kArticlesIterations = 24;
constexpr std::uint32_t kQuickMilliseconds = 60;

// The allocators of --allocators, or the system's and, if it can be found, Freehold.
std::vector<Allocator> chosen_allocators(const ScaleOptions& options, std::vector<std::string>& notes) {
  std::vector<Allocator> allocators;
  if (options.allocators) {
    for (const std::string& text : split_list("--allocators", *options.allocators))
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
    throw Failure(kExitRefused, fmt::format("--iterations: {} are too few for {} workers", iterations, most_workers));
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
  if (options.tests) settings.tests = parse_names<Workload>("--tests", *options.tests, kWorkloads);
  if (options.modes) settings.modes = parse_names<Mode>("--mode", *options.modes, kModes);
  if (std::ranges::count(settings.modes, Mode::kPool) > 0 && settings.workers.back() > kMostPoolWorkers)
    throw Failure(kExitRefused, fmt::format("--workers: a pool has {} at most", kMostPoolWorkers));
  settings.iterations = chosen_iterations(options, settings.workers.back());
  options.experiment.apply(settings, kQuickMilliseconds);
  if (cells_of(settings).empty()) {
    throw Failure(
        kExitRefused,
        "--mode: there is nothing to measure; isolation and handover run in threads only, memory does not run in a pool");
  }
  return settings;
}

int run_scale(const ScaleOptions& options) {
  open_standard_files();
  std::vector<std::string> notes;
  const Settings settings = settings_of(options, notes);
  const auto run = [&notes](const Settings& chosen, Interrupts& interrupts, Progress& progress) {
    Results results = run_experiment(chosen, interrupts, progress);
    results.notes.insert(results.notes.begin(), notes.begin(), notes.end());
    return results;
  };
  return run_command(options.experiment.files, settings, run, write_results);
}

}  // namespace

void add_scale(CLI::App& app, Invocation& invocation) {
  static ScaleOptions options;
  Command command(app, "scale", find_experiment("scale")->summary);
  command.add_option("--allocators", options.allocators,
                     "system, freehold, jemalloc, tcmalloc, tbbmalloc, mimalloc, /path/to/lib.so or NAME=PATH "
                     "[system,freehold]",
                     "LIST");
  command.add_option("--workers", options.workers, "Numbers of workers [1,2,3,4,6]", "LIST");
  command.add_option("--iterations", options.iterations, "Number of iterations that the workers share [24]", "N");
  command.add_option("--tests", options.tests,
                     "compute, allocate, mixed, memory, locked, isolation, handover [all but locked]", "LIST");
  command.add_option("--mode", options.modes, "threads, processes, pool [threads,processes]", "LIST");
  command.add_option("--via", options.via, "pool: add the mode pool; run the tests compute, allocate and locked", "pool");
  options.experiment.add_to(command, {.sets = "3",
                                      .time = "Time of one worker in a measurement, about [150]",
                                      .quick = "Short run: one set, 60 ms for each measurement",
                                      .page = "docs/scale.md explains the workloads and the method."});
  command.on_use([&invocation] { invocation.exit_code = run_scale(options); });
}

}  // namespace freehold::cli
