// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/resampled.hpp"

#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <random>

#include "tools/doctor/facts/derived.hpp"

namespace freehold::doctor {
namespace {

constexpr std::size_t kEnoughUndisturbed = 2;  // trials of a cell: the disturbed ones are left out
constexpr double kStoodStill = 0.5;            // of the CPUs that a cell's trials usually want: others kept it from them
constexpr double kLeastLeft = 0.02;            // share of the time: a trial that had its CPUs for less says nothing exact
constexpr double kLeastSpread = 0.01;
constexpr double kUnknownSpread = 0.08;      // assumed where nothing was tried twice
constexpr std::size_t kEnoughForErrors = 3;  // trials of a cell: one that stood still does not move their median
constexpr std::size_t kEnoughErrors = 10;
constexpr double kLeastCpu_s = 1e-6;
// From the median of absolute deviations to a standard deviation, for what is normally distributed.
constexpr double kDeviations = 1.4826;

constexpr unsigned kNoRound = ~0U;
constexpr double kCellsOfARound = 4;  // from so many on it is seen what all of a round have in common

bool has_rounds(const Cell& cell) {
  return std::ranges::all_of(cell.trials, [](const Trial& trial) { return trial.round.has_value(); });
}

// A round's effect on all of its trials, as a factor of their costs, and from how many trials it is known.
struct RoundEffect {
  double logs = 0;
  double trials = 0;
  [[nodiscard]] bool is_seen() const { return trials >= kCellsOfARound; }
  [[nodiscard]] double factor() const { return is_seen() ? std::exp(logs / trials) : 1; }
  // The effect was told by the trials that it is taken from: what is left of them differs by less.
  [[nodiscard]] double correction() const { return is_seen() ? std::sqrt(trials / (trials - 1)) : 1; }
};

// Returns how far trials differ; `within_rounds`: beside what their round does to all of them, which draws of whole rounds
// keep alike.
double usual_spread_of(const Experiment& experiment, const std::vector<std::vector<double>>& costs, bool within_rounds) {
  std::map<unsigned, RoundEffect> effects;
  const auto for_each_trial = [&](const auto& use) {
    for (std::size_t i = 0; i < costs.size(); ++i) {
      if (costs[i].size() < 2) continue;
      const bool rounds = has_rounds(experiment.cells[i]);
      const double middle = median(costs[i]);
      for (std::size_t trial = 0; trial < costs[i].size(); ++trial)
        use(rounds ? *experiment.cells[i].trials[trial].round : kNoRound, costs[i][trial] / middle, costs[i].size());
    }
  };
  for_each_trial([&](unsigned round, double relative, std::size_t) {
    if (!within_rounds || round == kNoRound || relative <= 0) return;
    effects[round].logs += std::log(relative);
    ++effects[round].trials;
  });
  std::vector<double> deviations;
  for_each_trial([&](unsigned round, double relative, std::size_t trials) {
    const RoundEffect& effect = effects[round];
    const double few = std::sqrt(static_cast<double>(trials) / static_cast<double>(trials - 1));
    deviations.push_back(std::abs(relative / effect.factor() - 1) * few * effect.correction());
  });
  return deviations.empty() ? kUnknownSpread : std::max(kLeastSpread, kDeviations * median(deviations));
}

// Beside others a trial may stand still though none of its time is counted as theirs: it wants hardly any CPUs then.
void leave_out_disturbed(const Setting& setting, std::vector<Trial>& trials) {
  const auto wanted = [](const Trial& trial) { return (trial.cpu_s() + trial.taken_s) / trial.wall_s; };
  std::vector<double> usual;
  for (const Trial& trial : trials) usual.push_back(wanted(trial));
  const bool are_others_there =
      std::ranges::any_of(trials, [&](const Trial& t) { return taken_share(t, setting) > kDisturbed; });
  const double least = are_others_there && trials.size() >= kEnoughForErrors ? kStoodStill * median(usual) : 0;
  const auto disturbance = [&](const Trial& trial) {
    return wanted(trial) < least ? HUGE_VAL : taken_share(trial, setting);
  };
  std::vector<Trial> quiet;
  std::ranges::copy_if(trials, std::back_inserter(quiet),
                       [&](const Trial& trial) { return disturbance(trial) <= kDisturbed; });
  if (quiet.size() >= kEnoughUndisturbed) {
    trials = std::move(quiet);
  } else if (trials.size() >= 2 * kEnoughUndisturbed) {  // of a machine that is never quiet, its quieter moments
    std::ranges::stable_sort(trials, {}, disturbance);
    trials.resize((trials.size() + 1) / 2);
  }
}

// Returns by how much of their time a step of the kernel's clock moves trials from which others took some, on the average.
double step_of_clock(const Cell& cell) {
  double steps = 0;
  for (const Trial& trial : cell.trials)
    if (trial.taken_s > 0 && trial.wall_s > 0) steps += kTick_s / trial.wall_s;
  return steps / static_cast<double>(cell.trials.size());
}

// How far trials were from their cell's median, as logarithms.
std::vector<double> errors_of(const std::vector<std::vector<double>>& costs) {
  std::vector<double> errors;
  for (const auto& of_cell : costs) {
    if (of_cell.size() < kEnoughForErrors) continue;
    const double middle = median(of_cell);
    for (const double cost : of_cell) errors.push_back(std::log(cost / middle));
  }
  return errors;
}

// Which trials a draw takes. What the machine does in one round it does to all cells, and figures compare cells: so a draw
// takes whole rounds, with replacement. Of a cell without that round it takes any trial, so that each is as likely.
class DrawnRounds {
 public:
  explicit DrawnRounds(const Experiment& experiment) {
    for (const Cell& cell : experiment.cells) {
      if (!has_rounds(cell)) continue;
      most_ = std::max(most_, cell.trials.size());
      for (const Trial& trial : cell.trials) rounds_.push_back(*trial.round);
    }
    std::ranges::sort(rounds_);
    rounds_.erase(std::ranges::unique(rounds_).begin(), rounds_.end());
    if (rounds_.empty()) return;
    std::mt19937_64 random(most_);
    std::uniform_int_distribution<std::size_t> any(0, rounds_.size() - 1);
    drawn_.resize(Resampled::kDraws);
    for (auto& draw : drawn_) {
      draw.resize(most_);
      std::ranges::generate(draw, [&] { return any(random); });
    }
  }

  // False for a cell with fewer trials than others: what its rounds did to it is not alike in both, and stays.
  [[nodiscard]] bool are_in(const Cell& cell) const { return has_rounds(cell) && cell.trials.size() == most_; }

  // One cell's trial in each of the rounds, if there is one.
  class OfCell {
   public:
    OfCell(const DrawnRounds& all, const Cell& cell) : all_(all), any_(0, cell.trials.size() - 1) {
      if (!has_rounds(cell)) return;
      by_round_.resize(all.rounds_.size());
      for (std::size_t trial = 0; trial < cell.trials.size(); ++trial)
        by_round_[static_cast<std::size_t>(std::ranges::lower_bound(all.rounds_, *cell.trials[trial].round) -
                                           all.rounds_.begin())] = trial;
    }
    // The `nth` trial of the draw.
    [[nodiscard]] std::size_t trial(std::size_t draw, std::size_t nth, std::mt19937_64& random) {
      const auto in_round = by_round_.empty() ? std::nullopt : by_round_[all_.drawn_[draw][nth]];
      return in_round ? *in_round : any_(random);
    }

   private:
    const DrawnRounds& all_;
    std::uniform_int_distribution<std::size_t> any_;
    std::vector<std::optional<std::size_t>> by_round_;
  };

 private:
  std::size_t most_ = 0;
  std::vector<unsigned> rounds_;                 // ascending
  std::vector<std::vector<std::size_t>> drawn_;  // of each draw: into rounds_
};

}  // namespace

// Shares of the wall time: in p1 one thread was ready to run, in pw all were, and they had a CPU in the shares q1 and qw
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
  std::vector<std::vector<double>> costs, busy;
  for (const Cell& cell : experiment.cells) {
    std::vector<double>& of_cell = costs.emplace_back();
    std::vector<double>& busy_in_cell = busy.emplace_back();
    for (const Trial& trial : cell.trials) {
      of_cell.push_back(cost_without_others(trial, cell.setting.width(), std::nullopt));
      busy_in_cell.push_back(std::max(trial.cpu_s(), kLeastCpu_s) / of_cell.back());
    }
  }
  usual_spread_ = usual_spread_of(experiment, costs, false);
  // One trial that stood still makes its whole round seem slow: what rounds do is taken off only if trials differ less then.
  const double within_rounds = std::min(usual_spread_, usual_spread_of(experiment, costs, true));
  // A median of several trials leaves out one that stood still. A single trial may be such a one, as often as others were.
  const std::vector<double> errors = errors_of(costs);
  std::uniform_int_distribution<std::size_t> any_error(0, std::max<std::size_t>(1, errors.size()) - 1);
  const double spread_of_busy = usual_spread_of(experiment, busy, false);
  const DrawnRounds rounds(experiment);

  std::mt19937_64 random(experiment.cells.size()), of_cpus(experiment.cells.size() + 1);
  std::uniform_real_distribution<double> delayed(0, 1);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const Cell& cell = experiment.cells[i];
    std::vector<double>& medians = medians_.emplace_back();
    std::vector<double>& cpu_medians = cpu_medians_.emplace_back();
    if (cell.trials.empty()) continue;
    medians.push_back(median(costs[i]));
    cpu_medians.push_back(cpu_seconds(cell));
    DrawnRounds::OfCell of_rounds(rounds, cell);
    const double spread = rounds.are_in(cell) ? within_rounds : usual_spread_;
    // More trials are no help against the clock's steps: what is under one counts as nothing in each of them.
    std::normal_distribution<double> shake(
        0, error_of_sum(spread / std::sqrt(static_cast<double>(cell.trials.size())), step_of_clock(cell)));
    std::normal_distribution<double> shake_busy(0, spread_of_busy / std::sqrt(static_cast<double>(cell.trials.size())));
    const bool is_single = cell.trials.size() == 1 && errors.size() >= kEnoughErrors;
    std::vector<double> drawn(cell.trials.size()), drawn_cpu(cell.trials.size());
    for (std::size_t draw = 0; draw < kDraws; ++draw) {
      const double how = delayed(random);
      for (std::size_t nth = 0; nth < drawn.size(); ++nth) {
        const Trial& trial = cell.trials[of_rounds.trial(draw, nth, random)];
        drawn[nth] = cost_without_others(trial, cell.setting.width(), how);
        drawn_cpu[nth] = trial.cpu_s();
      }
      const double slow = std::exp(is_single ? shake(random) / 2 - errors[any_error(random)] : shake(random));
      medians.push_back(median(drawn) * slow);
      cpu_medians.push_back(median(drawn_cpu) * slow * std::exp(shake_busy(of_cpus)));
    }
  }
}

}  // namespace freehold::doctor
