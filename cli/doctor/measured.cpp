#include "cli/doctor/measured.hpp"

#include <algorithm>

#include "cli/support/statistics.hpp"

namespace freehold::cli::doctor {
namespace {
using namespace freehold::doctor;

// The median of `figure`(trial) over the trials in which the wall time is known.
template <class Figure>
std::optional<double> median_of(const Cell* cell, Figure figure) {
  if (cell == nullptr) return std::nullopt;
  std::vector<double> values;
  for (const Trial& trial : cell->trials) {
    if (trial.wall_s > 0) values.push_back(figure(trial));
  }
  return values.empty() ? std::nullopt : std::optional(median(std::move(values)));
}

// The variant in the sweep's first setting; null: it was not measured there.
const Cell* base_of(const Experiment& experiment, std::size_t variant) {
  const std::vector<Setting> sweep = experiment.sweep();
  const Cell* const cell = sweep.empty() ? nullptr : experiment.find(variant, sweep.front());
  return cell != nullptr && !cell->trials.empty() ? cell : nullptr;
}

}  // namespace

std::vector<double> costs_of(const Cell& cell) {
  std::vector<double> costs;
  for (const Trial& trial : cell.trials) costs.push_back(trial.cost());
  return costs;
}

std::optional<double> median_cost(const Cell* cell) {
  return median_of(cell, [](const Trial& trial) { return trial.cost(); });
}

std::optional<std::uint64_t> median_peak(const Cell* cell) {
  const auto bytes = median_of(cell, [](const Trial& trial) { return static_cast<double>(trial.peak_rss_bytes); });
  return bytes ? std::optional(static_cast<std::uint64_t>(*bytes)) : std::nullopt;
}

std::optional<double> busy_cpus(const Cell* cell) {
  return median_of(cell, [](const Trial& trial) { return trial.cpu_s() / trial.wall_s; });
}

std::optional<double> page_faults_per_second(const Cell* cell) {
  return median_of(cell, [](const Trial& trial) { return static_cast<double>(trial.page_faults) / trial.wall_s; });
}

std::optional<double> throttled_share(const Cell* cell) {
  return median_of(cell, [](const Trial& trial) { return trial.throttled_s / trial.wall_s; });
}

std::optional<double> speed(const Experiment& experiment, const Cell& cell) {
  const Cell* const base = base_of(experiment, cell.variant);
  const auto one = median_cost(base), all = median_cost(&cell);
  if (!one || !all || *all <= 0) return std::nullopt;
  const double work = experiment.work_grows ? ideal_speed(experiment, cell.setting) : cell.setting.copies;
  return work * *one / *all;
}

double ideal_speed(const Experiment& experiment, const Setting& setting) {
  const std::vector<Setting> sweep = experiment.sweep();
  const double least = sweep.empty() ? 1 : sweep.front().width();
  return setting.copies * setting.width() / least;
}

std::optional<Slowdown> copies_slowdown(const Experiment& experiment) {
  const Cell* most = nullptr;
  for (const Cell& cell : experiment.cells) {
    if (cell.variant != 0 || cell.setting.copies < 2 || cell.trials.empty()) continue;
    if (most == nullptr || cell.setting.copies > most->setting.copies) most = &cell;
  }
  if (most == nullptr) return std::nullopt;
  Setting one = most->setting;
  one.copies = 1;
  const Cell* single = experiment.find(0, one);
  if (single == nullptr || single->trials.empty()) single = base_of(experiment, 0);
  const auto cpu = [](const Trial& trial) { return trial.cpu_s(); };
  const auto alone = median_of(single, cpu), beside = median_of(most, cpu);
  if (!alone || !beside || *alone <= 0) return std::nullopt;
  return Slowdown{most->setting.copies, *beside / *alone};
}

bool was_tried(const Experiment& experiment, std::size_t variant) {
  return std::ranges::any_of(experiment.cells, [variant](const Cell& cell) {
    return cell.variant == variant && cell.setting.copies == 1 && (!cell.trials.empty() || !cell.failure.empty());
  });
}

const Cell* own_failure(const Experiment& experiment) {
  const auto failed = std::ranges::find_if(
      experiment.cells, [](const Cell& cell) { return cell.variant == 0 && cell.trials.empty() && !cell.failure.empty(); });
  return failed == experiment.cells.end() ? nullptr : &*failed;
}

}  // namespace freehold::cli::doctor
