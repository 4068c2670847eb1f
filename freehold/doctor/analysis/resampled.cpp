// SPDX-License-Identifier: MIT
#include "freehold/doctor/analysis/resampled.hpp"

#include <cmath>
#include <random>

#include "freehold/doctor/analysis/derived.hpp"

namespace freehold::doctor {
namespace {

constexpr std::size_t kEnoughUndisturbed = 2;  // trials of a cell: the disturbed ones are left out
constexpr double kLeastLeft = 0.02;            // of the time: a trial that had its CPUs for less says nothing exact
constexpr double kLeastSpread = 0.01;
constexpr double kUnknownSpread = 0.08;  // assumed where nothing was tried twice
// From the median of absolute deviations to a standard deviation, for what is normally distributed.
constexpr double kDeviations = 1.4826;

double usual_spread_of(const std::vector<std::vector<double>>& costs) {
  std::vector<double> deviations;
  for (const auto& cell : costs) {
    if (cell.size() < 2) continue;
    const auto trials = static_cast<double>(cell.size());
    const double middle = median(cell), few = std::sqrt(trials / (trials - 1));
    for (const double cost : cell) deviations.push_back(std::abs(cost / middle - 1) * few);
  }
  return deviations.empty() ? kUnknownSpread : std::max(kLeastSpread, kDeviations * median(deviations));
}

void leave_out_disturbed(const Setting& setting, std::vector<Trial>& trials) {
  std::vector<Trial> quiet;
  for (const Trial& trial : trials)
    if (taken_share(trial, setting) <= kDisturbed) quiet.push_back(trial);
  if (quiet.size() >= kEnoughUndisturbed || 2 * quiet.size() >= trials.size()) {
    trials = std::move(quiet);
  } else if (trials.size() >= 2 * kEnoughUndisturbed) {  // of a machine that is never quiet, its quieter moments
    std::ranges::stable_sort(trials, {}, [&](const Trial& trial) { return taken_share(trial, setting); });
    trials.resize((trials.size() + 1) / 2);
  }
}

}  // namespace

// Of the wall time: in the share p1 one thread was ready to run, in pw all were, and they had a CPU in the shares q1 and qw
// of that. Known are the CPU time, p1 q1 + w pw qw, and the demand for it, p1 + w pw. Without others the program takes idle
// + p1 q1 + pw qw.
double cost_without_others(const Trial& trial, unsigned width, std::optional<double> how) noexcept {
  if (trial.taken_s <= 0 || trial.wall_s <= 0) return trial.cost();
  const double w = width, had = std::min(trial.cpu_s() / trial.wall_s, w);
  const double demand = std::clamp(had + trial.taken_s / trial.wall_s, had, w);
  const double least_idle = std::max(0.0, 1 - demand), most_idle = std::max(least_idle, 1 - demand / w);
  const double idle = trial.ready_share ? std::clamp(1 - *trial.ready_share, least_idle, most_idle)
                                        : least_idle + (1 - how.value_or(1)) * (most_idle - least_idle);
  double left = idle + had;
  if (width > 1 && demand > 0) {
    const double all_ready = std::clamp((demand - (1 - idle)) / (w - 1), 0.0, 1.0), one_ready = 1 - idle - all_ready;
    const double least = std::max(0.0, (had - one_ready) / w), most = std::max(least, std::min(all_ready, had / w));
    const double at_once = how ? least + *how * (most - least) : std::clamp(all_ready * had / demand, least, most);
    left -= (w - 1) * at_once;
  }
  return trial.cost() * std::clamp(left, kLeastLeft, 1.0);
}

double taken_share(const Trial& trial, const Setting& setting) noexcept {
  return trial.wall_s > 0 ? std::min(trial.taken_s / (trial.wall_s * setting.width()), 1.0) : 0;
}

Experiment without_disturbed(Experiment experiment) {
  for (Cell& cell : experiment.cells) leave_out_disturbed(cell.setting, cell.trials);
  const std::vector<Setting> sweep = experiment.sweep();
  for (Delayed& of : experiment.delayed)
    if (!sweep.empty()) leave_out_disturbed(sweep.back(), of.trials);
  return experiment;
}

Resampled::Resampled(const Experiment& experiment) : experiment_(experiment) {
  std::vector<std::vector<double>> costs;
  for (const Cell& cell : experiment.cells) {
    std::vector<double>& of_cell = costs.emplace_back();
    for (const Trial& trial : cell.trials) of_cell.push_back(cost_without_others(trial, cell.setting.width(), std::nullopt));
  }
  usual_spread_ = usual_spread_of(costs);

  std::mt19937_64 random(experiment.cells.size()), of_cpus(experiment.cells.size() + 1);
  std::uniform_real_distribution<double> delayed(0, 1);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const Cell& cell = experiment.cells[i];
    std::vector<double>& medians = medians_.emplace_back();
    std::vector<double>& cpu_medians = cpu_medians_.emplace_back();
    if (cell.trials.empty()) continue;
    medians.push_back(median(costs[i]));
    cpu_medians.push_back(cpu_seconds(cell));
    std::uniform_int_distribution<std::size_t> any(0, cell.trials.size() - 1);
    std::normal_distribution<double> shake(0, usual_spread_ / std::sqrt(static_cast<double>(cell.trials.size())));
    std::vector<double> drawn(cell.trials.size());
    for (std::size_t draw = 0; draw < kDraws; ++draw) {
      const double how = delayed(random);
      std::ranges::generate(drawn, [&] { return cost_without_others(cell.trials[any(random)], cell.setting.width(), how); });
      medians.push_back(median(drawn) * std::exp(shake(random)));
    }
    for (std::size_t draw = 0; draw < kDraws; ++draw) {
      std::ranges::generate(drawn, [&] { return cell.trials[any(of_cpus)].cpu_s(); });
      cpu_medians.push_back(median(drawn) * std::exp(shake(of_cpus)));
    }
  }
}

}  // namespace freehold::doctor
