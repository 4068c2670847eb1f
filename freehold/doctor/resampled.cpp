#include "freehold/doctor/resampled.hpp"

#include <cmath>
#include <random>

namespace freehold::doctor {
namespace {

// Trials that lost more than this of their CPU time to others say more about these others, if there are better ones.
constexpr double kDisturbed = 0.10;
constexpr double kLeastSpread = 0.01;
constexpr double kUnknownSpread = 0.08;  // assumed where nothing was tried twice
// From the median of absolute deviations to a standard deviation, for what is normally distributed.
constexpr double kDeviations = 1.4826;

std::vector<double> undisturbed_costs(const Cell& cell) {
  std::vector<double> all, undisturbed;
  for (const Trial& trial : cell.trials) {
    all.push_back(trial.cost());
    if (trial.stolen_s <= kDisturbed * trial.wall_s) undisturbed.push_back(trial.cost());
  }
  return 2 * undisturbed.size() >= all.size() ? undisturbed : all;
}

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

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return values.size() % 2 != 0 ? *middle : (*middle + *std::max_element(values.begin(), middle)) / 2;
}

Resampled::Resampled(const Experiment& experiment) : experiment_(experiment) {
  std::vector<std::vector<double>> costs;
  for (const Cell& cell : experiment.cells) costs.push_back(undisturbed_costs(cell));
  usual_spread_ = usual_spread_of(costs);

  std::mt19937_64 random(experiment.cells.size());
  for (const auto& cell : costs) {
    std::vector<double>& medians = medians_.emplace_back();
    if (cell.empty()) continue;
    medians.push_back(median(cell));
    std::uniform_int_distribution<std::size_t> any(0, cell.size() - 1);
    std::normal_distribution<double> shake(0, usual_spread_ / std::sqrt(static_cast<double>(cell.size())));
    std::vector<double> drawn(cell.size());
    for (std::size_t draw = 0; draw < kDraws; ++draw) {
      std::ranges::generate(drawn, [&] { return cell[any(random)]; });
      medians.push_back(median(drawn) * std::exp(shake(random)));
    }
  }
}

}  // namespace freehold::doctor
