// SPDX-License-Identifier: MIT
// Results made by hand, for tests of what is computed from them.
#pragma once
#include <functional>
#include <string>

#include "lab/pools/experiment.hpp"

namespace freehold::lab::pools {

// Nanoseconds per pair of a job in a set.
using Cost = std::function<double(const Job&, std::size_t set)>;

inline constexpr std::size_t kOurPool = 0, kOtherPool = 1, kSpreadPool = 2, kBaselinePool = 3;

inline const Candidate* made_up_pool(std::size_t i) {
  static const Candidate all[] = {{std::string(kOurs), "ours", Kind::kStrategy, false, nullptr},
                                  {"other", "theirs", Kind::kLibrary, false, nullptr},
                                  {"spread", "spread", Kind::kStrategy, true, nullptr},
                                  {"baseline", "no pool", Kind::kBaseline, false, nullptr}};
  return &all[i];
}

inline Results results_with(const Cost& cost, std::uint32_t repeat = 3) {
  Settings settings;
  for (const std::size_t pool : {kOurPool, kOtherPool, kSpreadPool, kBaselinePool})
    settings.pools.push_back(made_up_pool(pool));
  settings.repeat = repeat;
  settings.crc_threads = {8, 16};
  settings.crc_pools = {1, 4};
  Results results(settings, jobs_of(settings));
  results.machine.cpus = 2;
  results.machine.cpu_model = "a CPU";
  for (auto& [job, samples, failure] : results.series) {
    for (std::uint32_t set = 0; set < repeat; ++set) {
      Report sample;
      sample.operations = job.operations * job.threads / 2 * (1 + job.reads);
      sample.cpu_ns = 1000;
      sample.peak_rss_bytes = 1 << 20;
      sample.elapsed_ns = static_cast<std::uint64_t>(cost(job, set) * static_cast<double>(sample.operations));
      if (job.counted) sample.conflicts = sample.operations / 25;
      samples.push_back(sample);
    }
  }
  return results;
}

// Our pool wins by half, but not in the ring.
inline double ours_loses_the_ring(const Job& job, std::size_t set) {
  const double noise = 1 + 0.01 * static_cast<double>(set);
  if (job.pool == made_up_pool(kBaselinePool)) return 1 * noise;
  if (job.pool == made_up_pool(kOurPool)) return (job.test == Trial::kRing ? 30 : 5) * noise;
  return job.pool == made_up_pool(kOtherPool) ? 10 : 20 * noise;
}

}  // namespace freehold::lab::pools
