// SPDX-License-Identifier: MIT
// Results made by hand, for tests of what is computed from them.
#pragma once
#include <algorithm>
#include <functional>

#include "lab/scale/experiment.hpp"

namespace freehold::lab::scale {

// Seconds that a job takes in a set.
using Seconds = std::function<double(const Job&, std::size_t set)>;

// The report of workers that were busy all the time, so many at once.
inline Report report_of(double elapsed_ns, std::uint64_t at_once) {
  Report report;
  report.elapsed_ns = static_cast<std::uint64_t>(elapsed_ns);
  report.cpu_ns = report.elapsed_ns * at_once;
  report.peak_rss_bytes = 1 << 20;
  return report;
}

inline Results results_with(const Seconds& seconds, std::vector<std::uint32_t> workers = {1, 2, 4}, std::uint32_t repeat = 3,
                            bool via_pool = false) {
  Settings settings;
  if (via_pool) {
    settings.modes.push_back(Mode::kPool);
    settings.tests.assign(kPoolWorkloads.begin(), kPoolWorkloads.end());
  }
  settings.subjects = subjects_of({{"system", ""}, {"freehold", "/lib/libfreehold.so"}});
  settings.workers = std::move(workers);
  settings.repeat = repeat;
  Results results(settings, jobs_of(settings));
  results.machine.cpus = 2;
  results.machine.cpu_model = "a CPU";
  for (auto& [job, samples, failure] : results.series) {
    job.units = 10;
    for (std::uint32_t set = 0; set < repeat; ++set)
      samples.push_back(report_of(1e9 * seconds(job, set), std::min(job.workers, results.machine.cpus)));
  }
  return results;
}

// The article describes this: threads on the system allocator get slower as they allocate, everything else scales.
inline double as_in_the_article(const Job& job, std::size_t) {
  const bool degrades = job.subject == "system" && job.mode == Mode::kThreads && job.test == Workload::kAllocate;
  return degrades ? 0.2 * job.workers : 0.2 / std::min(job.workers, 2u);
}

}  // namespace freehold::lab::scale
