// SPDX-License-Identifier: MIT
// Results made by hand, for tests of what is computed from them.
#pragma once
#include <functional>
#include <string>

#include "lab/pools/results.hpp"

namespace freehold::cli::pools {

// Nanoseconds per pair of a cell in a set.
using Cost = std::function<double(const Cell&, std::size_t set)>;

inline constexpr std::size_t kOurPool = 0, kOtherPool = 1, kSpreadPool = 2, kBaselinePool = 3;

inline const Candidate* made_up_pool(std::size_t i) {
  static const Candidate all[] = {{std::string(kOurs), "ours", Kind::kStrategy, false, nullptr},
                                  {"other", "theirs", Kind::kLibrary, false, nullptr},
                                  {"spread", "spread", Kind::kStrategy, true, nullptr},
                                  {"baseline", "no pool", Kind::kBaseline, false, nullptr}};
  return &all[i];
}

inline Results results_with(const Cost& cost, std::uint32_t repeat = 3) {
  Results results;
  for (const std::size_t pool : {kOurPool, kOtherPool, kSpreadPool, kBaselinePool})
    results.settings.pools.push_back(made_up_pool(pool));
  results.settings.repeat = repeat;
  results.settings.crc_threads = {8, 16};
  results.settings.crc_pools = {1, 4};
  results.machine.cpus = 2;
  results.machine.cpu_model = "a CPU";
  for (const Cell& cell : cells_of(results.settings)) {
    Series series{.cell = cell, .samples = {}, .failure = {}};
    for (std::uint32_t set = 0; set < repeat; ++set) {
      const std::uint64_t reads = cell.row.test == Trial::kCrc ? results.settings.crc_reads : 1;
      Sample sample{.operations = results.settings.operations * cell.row.threads / 2 * (1 + reads),
                    .cpu_ns = 1000,
                    .peak_rss_bytes = 1 << 20};
      sample.elapsed_ns = static_cast<std::uint64_t>(cost(cell, set) * static_cast<double>(sample.operations));
      if (cell.counted) {
        sample.counted = 2 * sample.operations;
        sample.conflicts = sample.counted / 50;
      }
      series.samples.push_back(sample);
    }
    results.series.push_back(std::move(series));
  }
  return results;
}

// Our pool wins by half, but not in the ring.
inline double ours_loses_the_ring(const Cell& cell, std::size_t set) {
  const double noise = 1 + 0.01 * static_cast<double>(set);
  if (cell.pool == kBaselinePool) return 1 * noise;
  if (cell.pool == kOurPool) return (cell.row.test == Trial::kRing ? 30 : 5) * noise;
  return cell.pool == kOtherPool ? 10 : 20 * noise;
}

}  // namespace freehold::cli::pools
