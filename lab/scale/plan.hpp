// SPDX-License-Identifier: MIT
// The plan of `freehold scale`: its cells and their order. Every set measures each cell once, in an order of its own. Cells
// that differ in the subject alone follow each other, so that a disturbance of the machine falls on all subjects.
#pragma once
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "cli/support/library.hpp"
#include "lab/scale/job.hpp"

namespace freehold::cli::scale {

// An allocator, or the thread-local article's allocator over the system's (for its two tests only).
struct Subject {
  std::string name;
  std::string library;  // preloaded; empty: none
  Source source = Source::kMalloc;
};

struct Settings {
  std::vector<Subject> subjects;
  std::vector<std::uint32_t> workers{1, 2, 3, 4, 6};
  std::vector<Workload> tests{kUsualWorkloads.begin(), kUsualWorkloads.end()};
  std::vector<Mode> modes{Mode::kThreads, Mode::kProcesses};
  std::uint32_t iterations = 24;
  std::uint32_t repeat = 3;
  std::uint32_t milliseconds = 150;  // that one worker needs for a job, about
  bool one_cpu = false;              // all workers of a measurement share one CPU
};

// One cell of the tables: measured once in every set.
struct Cell {
  Workload test = Workload::kCompute;
  Mode mode = Mode::kThreads;
  std::size_t subject = 0;
  std::uint32_t workers = 1;

  [[nodiscard]] std::tuple<Workload, Mode, std::uint32_t> group() const { return {test, mode, workers}; }
  friend bool operator==(const Cell&, const Cell&) = default;
};

// "1,2,6" -> sorted, each once, and 1 in any case: everything is normalised to one worker. Throws Failure.
[[nodiscard]] std::vector<std::uint32_t> parse_workers(const std::string& text);
// The allocators, then the thread-local article's three. Throws Failure if two have the same name.
[[nodiscard]] std::vector<Subject> subjects_of(const std::vector<Allocator>& allocators);

// The numbers of workers that make sense for a test: pairs for the handover.
[[nodiscard]] std::vector<std::uint32_t> workers_of(const Settings& settings, Workload test);
// Every cell of the experiment, in the order of the tables.
[[nodiscard]] std::vector<Cell> cells_of(const Settings& settings);

}  // namespace freehold::cli::scale
