// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/bound.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/facts/resampled.hpp"

namespace freehold::doctor {
namespace {

constexpr std::size_t kDraws = 1000;
constexpr double kSpread = 0.01;        // spread of a median, at least, beside what its trials differ by
constexpr double kCallFactor = 1.5;     // a call takes at most so many times what was recorded,
constexpr double kCallDoubt_s = 10e-9;  // or so much more: a clock costs as much as a fast call
constexpr double kMostSaved = 0.98;     // share of the time
constexpr double kMostInTurn = 2;       // CPUs that are in malloc for the same critical path, where delays say no more
constexpr double kFault_s = 2e-6;     // that the kernel takes for a page at most: to clear it, to map it and to take it back
constexpr double kCountFactor = 2;    // there are at most so many times the calls that were recorded, as samples say,
constexpr double kCountDoubt = 10;    // and so many more
constexpr double kSampleErrors = 3;   // to be beyond chance
constexpr double kSpins = 0.02;       // share of the CPU time: CPUs may wait for one that is in malloc
constexpr double kNotSampled = 0.01;  // share of the CPU time: some hundred samples may miss so much
constexpr double kFewSleepers = 0.1;  // share of the CPUs: threads that sleep in locks, perhaps in malloc's

// Seconds of a call of malloc or free, waits included.
struct CallCost {
  double value_s = 0;
  double most_s = 0;
};
CallCost call_cost(const Attribution& recorded) {
  const double calls = recorded.allocating.calls + recorded.freeing.calls;
  if (calls <= 0) return {.value_s = 0, .most_s = kCallDoubt_s};
  const double seconds =
      recorded.allocating.cpu_s + recorded.allocating.blocked_s + recorded.freeing.cpu_s + recorded.freeing.blocked_s;
  const double value = seconds / calls;
  return {value, std::max(kCallFactor * value, value + kCallDoubt_s)};
}

// Medians of draws from the trials, with replacement. Few trials say little of their own spread, so that a draw also varies
// by what trials of this experiment usually differ by. What others took counts as in resampled.hpp.
class DrawnCosts {
 public:
  DrawnCosts(const std::vector<Trial>& trials, unsigned width, double usual_spread)
      : trials_(trials),
        width_(width),
        spread_(std::max(kSpread, usual_spread / std::sqrt(static_cast<double>(trials.size())))) {}
  [[nodiscard]] double measured() const {
    std::vector<double> costs;
    for (const Trial& trial : trials_) costs.push_back(cost_without_others(trial, width_, std::nullopt));
    return median(std::move(costs));
  }
  [[nodiscard]] double drawn(std::mt19937_64& random) const {
    std::uniform_int_distribution<std::size_t> any(0, trials_.size() - 1);
    std::uniform_real_distribution<double> delayed(0, 1);
    std::normal_distribution<double> shake(0, spread_);
    const double how = delayed(random);
    std::vector<double> again(trials_.size());
    std::ranges::generate(again, [&] { return cost_without_others(trials_[any(random)], width_, how); });
    return median(std::move(again)) * (1 + shake(random));
  }

 private:
  const std::vector<Trial>& trials_;
  unsigned width_;
  double spread_;
};

// The steepest way to a delay: threads that wait for each other hide a short one.
double hang(double cost, const std::vector<double>& delayed, const std::vector<double>& delays) {
  double steepest = 0;
  for (std::size_t i = 0; i < delays.size(); ++i) steepest = std::max(steepest, (delayed[i] - cost) / delays[i]);
  return steepest;
}

// The share of the CPU time in malloc and free. If samples of the code lie within the recording's own error, they are more
// exact, but do not say how much of the kernel's time is malloc's.
double most_share(const Attribution& recorded, const CodeGrowth& code, double system) {
  const double error = kNineOfTen * recorded.cpu_share_error, share = kCallFactor * (recorded.cpu_share + error);
  const double sampled = code.in_malloc + kSampleErrors * code.in_malloc_error + kNotSampled + system;
  return code.known && recorded.cpu_share - error <= sampled ? std::min(share, sampled) : share;
}

// Returns the most that malloc and free take of the time: their share of the CPU time, on the critical path as often as it
// can be. A program that calls them from one thread while it keeps more CPUs busy at other times has many times the share;
// of one that sleeps for most of the time, a part of it.
double most_in_malloc(double share, const Attribution& recorded, double busy) {
  return share * busy + kCallFactor * recorded.blocked_share;
}

// Returns the most that can be saved, because the work outside malloc remains and needs its time on all CPUs. CPUs that spin
// while one is in malloc look as if they worked: the delays may say otherwise.
double most_beside_work(double share, double busy_share) { return 1 - std::max(0.0, 1 - share) * std::min(1.0, busy_share); }

// The kernel's time for memory: what its faults can take of the time that it had.
double for_memory(const Cell& as_it_is) {
  const double cpu_s = cpu_seconds(as_it_is);
  return cpu_s > 0 ? std::min(system_share(as_it_is), page_faults(as_it_is) * kFault_s / cpu_s) : 0;
}

// Returns what a recording would say of malloc, as far as samples of the code do. They do not say whose locks threads sleep
// in: as long as that is little, all of them may be malloc's.
std::optional<Attribution> sampled(const Experiment& experiment, const Cell& as_it_is) {
  const CodeGrowth& code = experiment.code;
  const double asleep = code.lock_sleepers / as_it_is.setting.width();
  if (!code.known || asleep > kFewSleepers) return std::nullopt;
  Attribution as_recorded;
  as_recorded.cpu_share = code.in_malloc;
  as_recorded.cpu_share_error = code.in_malloc_error;
  as_recorded.blocked_share = asleep;
  return as_recorded;
}

std::optional<Estimate> bound_of(const Experiment& experiment, const Cell& as_it_is, const Attribution& recorded,
                                 double usual_spread) {
  std::vector<DrawnCosts> with_delay;
  std::vector<double> delays;
  for (const Delayed& of : experiment.delayed) {
    if (of.trials.empty()) continue;
    with_delay.emplace_back(of.trials, as_it_is.setting.width(), usual_spread);
    delays.push_back(of.delay_s);
  }
  const CallCost call = call_cost(recorded);
  const double most_calls = kCountFactor * (recorded.allocating.calls + recorded.freeing.calls) + kCountDoubt;
  const double busy = wanted_cpus(as_it_is), kernel = for_memory(as_it_is) * std::min(1.0, busy);
  const double share = most_share(recorded, experiment.code, system_share(as_it_is));
  const double beside_work = most_beside_work(share, busy / as_it_is.setting.width());
  double most = most_in_malloc(share, recorded, busy);
  if (experiment.code.known && experiment.code.spinning < kSpins) most = std::min(most, beside_work);
  const auto gain = [&](double in_malloc) { return 1 / (1 - std::clamp(in_malloc + kernel, 0.0, kMostSaved)); };
  const auto delayed_share = [&](double cost, const std::vector<double>& delayed, double call_s) {
    return std::min(hang(cost, delayed, delays), most_calls) * call_s / cost;
  };
  if (delays.empty()) {
    most = std::min(most, beside_work);
    return Estimate{1, gain(std::min(recorded.cpu_share, most)), gain(most)};
  }
  const DrawnCosts own(as_it_is.trials, as_it_is.setting.width(), usual_spread);
  std::vector<double> measured, drawn;
  for (const DrawnCosts& each : with_delay) measured.push_back(each.measured());
  std::mt19937_64 random(delays.size());
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    std::vector<double> again;
    for (const DrawnCosts& each : with_delay) again.push_back(each.drawn(random));
    drawn.push_back(delayed_share(own.drawn(random), again, call.most_s));
  }
  std::ranges::sort(drawn);
  // Calls that many threads make side by side are not waited for in turn, unless the delays say so.
  const double in_turn = std::min(most_in_malloc(share, recorded, std::min(busy, kMostInTurn)), beside_work);
  const double as_measured = delayed_share(own.measured(), measured, call.value_s);
  if (std::max(drawn[kDraws / 2], as_measured) < in_turn) most = in_turn;
  for (double& saved : drawn) saved = gain(std::min(saved, most));
  const double value = gain(std::min(as_measured, most));
  return Estimate{std::min(value, drawn[kDraws / 20]), value, std::max(value, drawn[kDraws - kDraws / 20 - 1])};
}

}  // namespace

std::optional<Estimate> bound_of(const Experiment& experiment, const Cell& as_it_is, const Attribution* recorded,
                                 double usual_spread) {
  if (as_it_is.trials.empty()) return std::nullopt;
  if (recorded != nullptr) return bound_of(experiment, as_it_is, *recorded, usual_spread);
  const auto as_recorded = sampled(experiment, as_it_is);
  if (!as_recorded) return std::nullopt;
  Experiment not_delayed = experiment;
  not_delayed.delayed.clear();
  return bound_of(not_delayed, as_it_is, *as_recorded, usual_spread);
}

}  // namespace freehold::doctor
