// SPDX-License-Identifier: MIT
// Results made by hand, for tests of what is computed from them.
#pragma once
#include <functional>
#include <string>

#include "lab/timers/experiment.hpp"

namespace freehold::lab::timers {

// Nanoseconds of CPU per operation, in each phase of a job in a set.
using JobCost = std::function<double(const Job&, std::size_t set)>;

inline constexpr std::size_t kReferenceAt = 0, kPrivateAt = 1, kWheelAt = 2, kPeerAt = 3, kBaselineAt = 4;

inline const Candidate* made_up_structure(std::size_t i) {
  const auto run = [](const Job&) { return Report{}; };
  static const Candidate all[] = {{std::string(kArticlesQueue), "containers", Kind::kOurs, false, run, run},
                                  {std::string(kArticlesPrivate), "a private heap", Kind::kOurs, false, run, run},
                                  {std::string(kWheel), "a wheel", Kind::kOurs, false, run, run},
                                  {"libuv", "somebody's", Kind::kLibrary, false, run, nullptr},
                                  {std::string(kBaseline), "memory", Kind::kBaseline, false, run, nullptr}};
  return &all[i];
}

inline Results results_of(const Settings& settings, const JobCost& cost) {
  constexpr std::uint64_t kOperations = 1'000'000;
  Results results(settings, jobs_of(settings));
  results.machine.cpus = 2;
  results.machine.cpu_model = "a CPU";
  for (auto& [job, samples, failure] : results.series) {
    for (std::uint32_t set = 0; set < settings.repeat; ++set) {
      Report sample;
      sample.peak_rss_bytes = 1 << 20;
      for (const Phase phase : phases_of(job.test)) {
        if (phase == Phase::kAll) continue;
        const auto ns = static_cast<std::uint64_t>(cost(job, set) * static_cast<double>(kOperations));
        sample.costs[static_cast<std::size_t>(phase)] = {
            .operations = kOperations, .cpu_ns = ns, .wall_ns = 2 * ns, .sleeps = 500, .waits = 250};
      }
      samples.push_back(sample);
    }
  }
  return results;
}

inline Results results_with(const JobCost& cost, std::uint32_t repeat = 3) {
  Settings settings;
  for (const std::size_t i : {kReferenceAt, kPrivateAt, kWheelAt, kPeerAt, kBaselineAt})
    settings.structures.push_back(made_up_structure(i));
  settings.repeat = repeat;
  return results_of(settings, cost);
}

// All that is wanted is reached, but that the wheel suffers from the heap's users.
inline double wheel_suffers(const Job& job, std::size_t set) {
  const double noise = 1 + 0.01 * static_cast<double>(set);
  const std::string name = job.name();
  if (name == kArticlesQueue) return 200 * noise;
  if (name == kArticlesPrivate) return 100 * noise;
  if (name == kWheel) return job.load == Load::kHeap ? 20 : 10;
  return name == kBaseline ? 5 : 150;
}

}  // namespace freehold::lab::timers
