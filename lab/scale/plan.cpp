// SPDX-License-Identifier: MIT
#include "lab/scale/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/support/arguments.hpp"
#include "cli/support/failure.hpp"
#include "lab/scale/workloads.hpp"

namespace freehold::cli::scale {
namespace {

constexpr std::uint32_t kMostWorkers = 1024;

void add_cells(std::vector<Cell>& cells, const Settings& settings, Workload test, Mode mode) {
  for (std::size_t subject = 0; subject < settings.subjects.size(); ++subject) {
    if (runs_as_processes(test) && settings.subjects[subject].source != Source::kMalloc) continue;
    for (const std::uint32_t workers : workers_of(settings, test)) cells.push_back({test, mode, subject, workers});
  }
}

}  // namespace

std::vector<std::uint32_t> parse_workers(const std::string& text) {
  return parse_numbers("--workers", text, 1, kMostWorkers, {1});
}

std::vector<Subject> subjects_of(const std::vector<Allocator>& allocators) {
  std::vector<Subject> subjects;
  for (const Allocator& allocator : allocators) subjects.push_back({allocator.name, allocator.library, Source::kMalloc});
  for (const Source source : {Source::kOwnerArticle, Source::kOwnerMutex, Source::kOwnerLockFree}) {
    subjects.push_back({std::string(name_of(source)), "", source});
  }
  for (auto subject = subjects.begin(); subject != subjects.end(); ++subject) {
    if (std::find_if(subjects.begin(), subject, [&](const Subject& s) { return s.name == subject->name; }) != subject) {
      throw Failure(kExitRefused, fmt::format("--allocators: the name '{}' is taken; give one of them another as NAME=PATH",
                                              printable(subject->name)));
    }
  }
  return subjects;
}

std::vector<std::uint32_t> workers_of(const Settings& settings, Workload test) {
  if (test != Workload::kHandover) return settings.workers;
  std::vector<std::uint32_t> pairs{2};
  for (const std::uint32_t workers : settings.workers) {
    if (workers > 2 && workers % 2 == 0) pairs.push_back(workers);
  }
  return pairs;
}

std::vector<Cell> cells_of(const Settings& settings) {
  std::vector<Cell> cells;
  for (const Mode mode : settings.modes) {
    for (const Workload test : settings.tests) {
      if (mode == Mode::kPool ? runs_in_a_pool(test) : runs_as_processes(test)) add_cells(cells, settings, test, mode);
    }
  }
  const bool threads = std::ranges::find(settings.modes, Mode::kThreads) != settings.modes.end();
  for (const Workload test : settings.tests) {
    if (threads && !runs_as_processes(test)) add_cells(cells, settings, test, Mode::kThreads);
  }
  return cells;
}

std::uint64_t operations_of(const Job& job) {
  constexpr std::uint64_t kOfAUnit[] = {kComputeRounds, kListNodes, kMixedNodes,      kMemoryWords,
                                        kListNodes,     kListNodes, kIsolationBlocks, kHandoverBlocks};
  return job.iterations * job.units * kOfAUnit[static_cast<std::size_t>(job.test)];
}

std::string_view operation_name(Workload test) {
  constexpr std::string_view kNames[] = {"round", "node", "node", "word", "node", "node", "block", "block"};
  return kNames[static_cast<std::size_t>(test)];
}

}  // namespace freehold::cli::scale
