// SPDX-License-Identifier: MIT
// Samples the instructions that a run's CPU time is spent at, from its start to its end, of the program and all its
// descendants, for growth_between(), and counts the threads that sleep in locks. As for any sampling of another process the
// kernel must permit it (kernel.perf_event_paranoid below 3); otherwise there are no samples, and no error. Files are those
// of the first process: what a descendant executes from another file counts as code of no file.
//
// One thread. Cost: 10 us of CPU time for each 250 us of the program's; such a run is no trial.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/doctor/facts/code_growth.hpp"
#include "tools/doctor/run/lock_sleepers.hpp"
#include "tools/doctor/run/sampler.hpp"
#include "tools/live/memory_map.hpp"

namespace freehold::doctor {

class CodeSampler {
 public:
  explicit CodeSampler(pid_t root) : root_(root), sampler_(kPeriod_s) {}

  // Begins to sample new threads, and takes what there is. To be called every few milliseconds.
  void look();
  // After the program has ended.
  [[nodiscard]] CodeSamples samples();

  static constexpr double kPeriod_s = 250e-6;
  static constexpr double kLooksEvery_s = 0.003;

 private:
  void read_maps();
  [[nodiscard]] const live::CodeMapping* mapping_of(std::uint64_t address) const;

  pid_t root_;
  Sampler sampler_;
  LockSleepers lock_sleepers_;
  std::map<std::uint64_t, live::CodeMapping> mappings_;  // by the first address
  std::map<std::uint64_t, std::size_t> counts_;
  std::string maps_;
};

}  // namespace freehold::doctor
