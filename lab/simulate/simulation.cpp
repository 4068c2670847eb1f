// SPDX-License-Identifier: MIT
#include "lab/simulate/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lab/experiment/run.hpp"

namespace freehold::cli::simulate {

std::optional<bool> is_flat(const Settings& settings, const Row& row) {
  const auto from = std::ranges::find(settings.cores, kFlatFrom);
  if (from == settings.cores.end()) return std::nullopt;
  const auto first = static_cast<std::size_t>(from - settings.cores.begin());
  if (first + 1 >= row.counts.size()) return std::nullopt;
  const auto misses = [&](std::size_t i) { return row.counts[i].per_pair(row.counts[i].misses); };
  const double bound = kFlatRatio * misses(first) + kFlatSlack;
  for (std::size_t i = first + 1; i < row.counts.size(); ++i)
    if (misses(i) > bound) return false;
  return true;
}

namespace {

// False: interrupted.
bool count_rows(const Settings& settings, std::vector<Row>& rows, Interrupts& interrupts, Progress& progress) {
  const std::size_t of = settings.workloads.size() * settings.sizes.size() * settings.cores.size();
  std::size_t done = 0;
  for (const EngineWorkload workload : settings.workloads) {
    for (const std::uint32_t bytes : settings.sizes) {
      rows.push_back({workload, bytes, {}});
      for (const std::uint32_t cores : settings.cores) {
        if (interrupts.arrived() != 0) break;
        progress.show(done++, of, fmt::format("{}, {} bytes, {} simulated cores", name_of(workload), bytes, cores));
        rows.back().counts.push_back(
            sim::count_engine({.workload = workload,
                               .bytes = bytes,
                               .cores = cores,
                               .nodes = std::min(settings.nodes, cores),
                               .quantum = settings.quantum,
                               .pairs = settings.pairs,
                               .note_places = settings.places != 0 && cores == settings.cores.back()}));
      }
    }
  }
  return done == of;
}

}  // namespace

Results run(const Settings& settings, Interrupts& interrupts, Progress& progress) {
  Results results;
  results.settings = settings;
  record_run(results, [&] { return count_rows(settings, results.rows, interrupts, progress); });
  return results;
}

}  // namespace freehold::cli::simulate
