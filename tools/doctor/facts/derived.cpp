// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/derived.hpp"

#include <algorithm>

namespace freehold::doctor {
namespace {

// The variant in the sweep's first setting; null: it was not measured there.
const Cell* base_of(const Experiment& experiment, std::size_t variant) {
  const std::vector<Setting> sweep = experiment.sweep();
  return sweep.empty() ? nullptr : measured(experiment, variant, sweep.front());
}

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return values.size() % 2 != 0 ? *middle : (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double cost(const Cell& cell) { return median_of(cell, &Trial::cost); }
double cpu_seconds(const Cell& cell) { return median_of(cell, &Trial::cpu_s); }
double peak_bytes(const Cell& cell) { return median_of(cell, &Trial::peak_rss_bytes); }
double page_faults(const Cell& cell) { return median_of(cell, &Trial::page_faults); }
double page_faults_per_second(const Cell& cell) {
  return median_of(cell, [](const Trial& trial) { return static_cast<double>(trial.page_faults) / trial.wall_s; });
}
double busy_cpus(const Cell& cell) {
  return median_of(cell, [](const Trial& trial) { return trial.cpu_s() / trial.wall_s; });
}
double wanted_cpus(const Cell& cell) {
  return median_of(cell, [](const Trial& trial) { return (trial.cpu_s() + trial.taken_s) / trial.wall_s; });
}
double idle_share(const Cell& cell) {
  return median_of(cell, [&](const Trial& trial) {
    return std::max(0.0, 1 - (trial.cpu_s() + trial.taken_s) / (trial.wall_s * cell.setting.width()));
  });
}
double spun_share(const Experiment& experiment, const Cell& all) {
  return experiment.code.team_waiting * std::min(1.0, busy_cpus(all) / all.setting.width());
}
double system_share(const Cell& cell) {
  return median_of(cell, [](const Trial& trial) { return trial.cpu_s() > 0 ? trial.system_s / trial.cpu_s() : 0; });
}
double throttled_share(const Cell& cell) {
  return median_of(cell, [](const Trial& trial) { return trial.throttled_s / trial.wall_s; });
}

std::optional<double> if_measured(double (*figure)(const Cell&), const Cell* cell) {
  return cell != nullptr && !cell->trials.empty() ? std::optional(figure(*cell)) : std::nullopt;
}

std::vector<double> costs_of(const Cell& cell) {
  std::vector<double> costs;
  for (const Trial& trial : cell.trials) costs.push_back(trial.cost());
  return costs;
}

const Cell* measured(const Experiment& experiment, std::size_t variant, const Setting& setting) noexcept {
  const Cell* const found = experiment.find(variant, setting);
  return found != nullptr && !found->trials.empty() ? found : nullptr;
}

std::optional<double> speed(const Experiment& experiment, const Cell& cell) {
  const Cell* const base = base_of(experiment, cell.variant);
  if (base == nullptr || cell.trials.empty() || cost(cell) <= 0) return std::nullopt;
  return growth_of_work(experiment, cell) * cost(*base) / cost(cell);
}

double growth_of_work(const Experiment& experiment, const Cell& cell) {
  if (!experiment.work_grows) return cell.setting.copies;
  const Cell* const base = base_of(experiment, cell.variant);
  const double threads = ideal_speed(experiment, cell.setting);
  if (base == nullptr || cell.trials.empty() || cpu_seconds(*base) <= 0) return threads;
  const double beyond = kernel_beyond_work(*base, cell, threads);
  return std::clamp(cell.setting.copies * (1 - beyond) * cpu_seconds(cell) / cpu_seconds(*base), 1.0, threads);
}

double kernel_beyond_work(const Cell& alone, const Cell& all, double threads) {
  const double system_s = median_of(all, &Trial::system_s) - threads * median_of(alone, &Trial::system_s);
  return cpu_seconds(all) > 0 ? std::clamp(system_s / cpu_seconds(all), 0.0, 1.0) : 0;
}

double ideal_speed(const Experiment& experiment, const Setting& setting) {
  const std::vector<Setting> sweep = experiment.sweep();
  const double least = sweep.empty() ? 1 : sweep.front().width();
  return setting.copies * setting.width() / least;
}

CellsOfCopies copies_of(const Experiment& experiment) {
  const Cell* most = nullptr;
  for (const Cell& cell : experiment.cells) {
    if (cell.variant != 0 || cell.setting.copies < 2 || cell.trials.empty()) continue;
    if (most == nullptr || cell.setting.copies > most->setting.copies) most = &cell;
  }
  if (most == nullptr) return {};
  Setting one = most->setting;
  one.copies = 1;
  const Cell* single = measured(experiment, 0, one);
  if (single == nullptr) single = base_of(experiment, 0);
  return {most, single};
}

std::optional<Slowdown> slowdown_of_copies(const Experiment& experiment) {
  const auto [most, single] = copies_of(experiment);
  if (most == nullptr || single == nullptr || cpu_seconds(*single) <= 0) return std::nullopt;
  return Slowdown{most->setting.copies, cpu_seconds(*most) / cpu_seconds(*single)};
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

}  // namespace freehold::doctor
