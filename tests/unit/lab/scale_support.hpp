// SPDX-License-Identifier: MIT
// Results made by hand, for tests of what is computed from them.
#pragma once
#include <algorithm>
#include <functional>

#include "lab/scale/results.hpp"

namespace freehold::cli::scale {

// Seconds that a cell takes in a set.
using Seconds = std::function<double(const Cell&, std::size_t set)>;

inline Results results_with(const Seconds& seconds, std::vector<std::uint32_t> workers = {1, 2, 4}, std::uint32_t repeat = 3,
                            bool via_pool = false) {
  Results results;
  if (via_pool) {
    results.settings.modes.push_back(Mode::kPool);
    results.settings.tests.assign(kPoolWorkloads.begin(), kPoolWorkloads.end());
  }
  results.settings.subjects = subjects_of({{"system", ""}, {"freehold", "/lib/libfreehold.so"}});
  results.settings.workers = std::move(workers);
  results.settings.repeat = repeat;
  results.units.fill(10);
  results.machine.cpus = 2;
  results.machine.cpu_model = "a CPU";
  for (const Cell& cell : cells_of(results.settings)) {
    Series series{.cell = cell, .samples = {}, .failure = {}};
    for (std::uint32_t set = 0; set < repeat; ++set) {
      const auto ns = static_cast<std::uint64_t>(1e9 * seconds(cell, set));
      series.samples.push_back(Sample{ns, ns * std::min(cell.workers, results.machine.cpus), 1 << 20});
    }
    results.series.push_back(std::move(series));
  }
  return results;
}

inline constexpr std::size_t kSystem = 0;
inline constexpr std::size_t kFreehold = 1;

// What the article describes: threads on the system allocator get slower as they allocate, everything else scales.
inline double as_in_the_article(const Cell& cell, std::size_t) {
  const bool degrades = cell.subject == kSystem && cell.mode == Mode::kThreads && cell.test == Workload::kAllocate;
  return degrades ? 0.2 * cell.workers : 0.2 / std::min(cell.workers, 2u);
}

}  // namespace freehold::cli::scale
