// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/work_growth.hpp"

#include <algorithm>
#include <cmath>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/derived.hpp"

namespace freehold::doctor {
namespace {

constexpr double kGrowth = 0.75;             // of the factor that threads grow by: work that grows so much, grows with them
constexpr double kSameInstructions = 1.15;   // times those with the fewest threads: the threads share the work
constexpr double kFewerInstructions = 0.85;  // no work shrinks so much with more threads: some were not counted
constexpr double kMoreCpuTime = 1.1;         // of that with the fewest threads: more work, or what threads do to each other
constexpr double kManyAllocations = 10'000;  // that say more of the work than the CPU time

// Share of the CPU time that threads were seen to spin for locks of the program's: waiting is no work.
double spun_share(const Attribution* recorded) {
  if (recorded == nullptr || recorded->cpu_s <= 0) return 0;
  double seconds = 0;
  for (const WaitSite& wait : recorded->lock_waits)
    if (wait.kind == WaitKind::kSpinLock) seconds += wait.seconds;
  return std::min(seconds / recorded->cpu_s, 1.0);
}

}  // namespace

std::optional<double> instruction_growth_of(const Experiment& experiment) {
  const std::vector<Setting> sweep = experiment.sweep();
  if (sweep.size() < 2) return std::nullopt;
  const auto executed = [&](const Setting& setting) {
    const Cell* const cell = measured(experiment, 0, setting);
    const bool are_counted = cell != nullptr && std::ranges::all_of(cell->trials, [](const Trial& trial) {
                               return trial.instructions.value_or(0) > 0;
                             });
    return are_counted ? median_of(*cell, [](const Trial& trial) { return *trial.instructions; }) : 0;
  };
  const double alone = executed(sweep.front()), all = executed(sweep.back());
  if (alone <= 0 || all < kFewerInstructions * alone) return std::nullopt;
  return all / alone;
}

bool more_threads_need_more(const Experiment& experiment) {
  const std::vector<Setting> sweep = experiment.sweep();
  if (sweep.size() < 2) return false;
  const Cell* const alone = measured(experiment, 0, sweep.front());
  const Cell* const all = measured(experiment, 0, sweep.back());
  return alone != nullptr && all != nullptr && cpu_seconds(*all) >= kMoreCpuTime * cpu_seconds(*alone);
}

WorkGrowth work_growth_of(const Experiment& experiment, const Attribution* recorded, const Attribution* recorded_alone) {
  const std::vector<Setting> sweep = experiment.sweep();
  if (sweep.size() < 2) return {};
  const auto threads = [](const Setting& setting) { return setting.threads != 0 ? setting.threads : setting.cpus; };
  const double factor = static_cast<double>(threads(sweep.back())) / threads(sweep.front());
  if (recorded != nullptr && recorded_alone != nullptr && recorded_alone->allocating.calls >= kManyAllocations)
    return {.grows = recorded->allocating.calls / recorded_alone->allocating.calls >= kGrowth * factor};
  // On fewer CPUs a program starts no fewer threads, as a rule.
  if (experiment.parallelism == ParallelismControl::kAffinity) return {};
  // Threads that spin execute more for the same work: more of them says nothing.
  if (const auto growth = instruction_growth_of(experiment); growth && *growth <= kSameInstructions) return {};
  if (experiment.code.work_known) return {.grows = experiment.code.work_grows};
  // Takes, of all allocators, the one that wastes the least CPU time.
  double least = INFINITY;
  for (std::size_t variant = 0; variant < experiment.variants.size(); ++variant) {
    const Cell* const all = measured(experiment, variant, sweep.back());
    const Cell* const alone = measured(experiment, variant, sweep.front());
    if (all != nullptr && alone != nullptr && cpu_seconds(*alone) > 0)
      least = std::min(least, cpu_seconds(*all) / cpu_seconds(*alone));
  }
  const bool grows = std::isfinite(least) && least * (1 - spun_share(recorded)) >= kGrowth * factor;
  return {.grows = grows, .is_guessed = true};
}

}  // namespace freehold::doctor
