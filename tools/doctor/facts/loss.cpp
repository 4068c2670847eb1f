// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/loss.hpp"

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/derived.hpp"

namespace freehold::doctor {
namespace {

constexpr double kThrottled = 0.1;   // of the time: the quota is what limits it
constexpr double kFewerCpus = 0.95;  // of the CPUs: a program that may use fewer is confined
constexpr double kOwnWaits = 0.1;    // of the threads' lives, in locks of the program's

}  // namespace

// Fewest and most CPUs; among settings that can use as many, the one with most threads.
Losses::Losses(const Experiment& of, const Attribution* recorded_of_it)
    : experiment(of), recorded(recorded_of_it), costs(of) {
  for (const Setting& setting : experiment.sweep()) {
    const Cell* const found = cell(0, setting);
    if (found == nullptr) continue;
    if (alone == nullptr) alone = found;
    all = found;
  }
  if (all != nullptr && alone->setting.width() == all->setting.width() && alone->setting.threads == all->setting.threads)
    alone = nullptr;
}

const Cell* Losses::cell(std::size_t variant, const Setting& setting) const {
  return measured(experiment, variant, setting);
}

double Losses::growth_of_work(const Costs& cost) const {
  if (!experiment.work_grows) return 1;
  const double threads = double(all->setting.width()) / alone->setting.width(), alone_s = cost.cpu_seconds(*alone);
  if (alone_s <= 0) return threads;
  return std::clamp((1 - kernel_beyond_work(*alone, *all, threads)) * cost.cpu_seconds(*all) / alone_s, 1.0, threads);
}

// Returns the time that the program would take on all CPUs if it lost nothing.
double Losses::ideal(const Costs& cost, double cost_alone) const { return ideal_on(cost, cost_alone, all->setting.width()); }
double Losses::ideal_on(const Costs& cost, double cost_alone, double cpus) const {
  return growth_of_work(cost) * cost_alone * alone->setting.width() / cpus;
}

// CPUs that the program could use of those that it was given.
double Losses::allowed_cpus() const {
  double cpus = all->setting.width();
  if (experiment.own_cpus > 0) cpus = std::min<double>(cpus, experiment.own_cpus);
  if (experiment.quota_cpus > 0) cpus = std::min(cpus, experiment.quota_cpus);
  return throttled_share(*all) > kThrottled ? std::min(cpus, busy_cpus(*all)) : cpus;
}

bool Losses::has_pair(std::size_t variant) const {
  return cell(variant, alone->setting) != nullptr && cell(variant, all->setting) != nullptr;
}

double Losses::lost_with(const Costs& cost, std::size_t variant) const {
  const double cost_alone = cost(*cell(variant, alone->setting));
  const double lost = cost(*cell(variant, all->setting)) - ideal(cost, cost_alone);
  return waits_for_own_locks() ? lost * cost(*alone) / cost_alone : lost;
}

bool Losses::waits_for_own_locks() const {
  return recorded != nullptr && recorded->lock_wait_share >= kOwnWaits &&
         recorded->lock_wait_share > recorded->blocked_share;
}

Split Losses::split(const Costs& cost) const {
  Split split;
  split.all = cost(*all);
  const double ideal_cost = ideal(cost, cost(*alone));
  split.lost = std::max(0.0, split.all - ideal_cost);
  const double allowed = allowed_cpus();
  if (allowed < kFewerCpus * all->setting.width()) {
    // Copies are confined in the same way, so that they would tell the same story twice.
    split.quota = std::min(split.lost, ideal_on(cost, cost(*alone), allowed) - ideal_cost);
  }
  if (best_allocator != 0)
    split.allocator = std::clamp(split.lost - std::max(0.0, lost_with(cost, best_allocator)), 0.0, split.lost - split.quota);
  if (split.quota == 0) {
    const auto [copies, single] = copies_of(experiment);
    const bool was_copied = copies != nullptr && single != nullptr && cpu_seconds(*single) > 0;
    const double more = was_copied ? std::max(0.0, cost.cpu_seconds(*copies) / cost.cpu_seconds(*single) - 1) : 0;
    // A process that waits for memory is busy: what CPUs idle is lost otherwise.
    const double busy_lost = std::max(0.0, split.lost - idle_share(*all) * split.all);
    split.machine = std::clamp(ideal_cost * more, 0.0, std::min(split.lost - split.allocator, busy_lost));
  }
  return split;
}

Estimate Losses::lost() const {
  return costs.estimate([&](const Costs& cost) {
    const Split s = split(cost);
    return s.lost / s.all;
  });
}

Estimate Losses::share(double Split::* part) const {
  return costs.estimate([&](const Costs& cost) {
    const Split s = split(cost);
    return s.lost > 0 ? s.*part / s.lost : 0;
  });
}

}  // namespace freehold::doctor
