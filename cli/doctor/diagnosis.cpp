#include "cli/doctor/diagnosis.hpp"

#include <fmt/format.h>

#include "cli/support/statistics.hpp"

namespace freehold::cli::doctor {
namespace {
using freehold::doctor::Setting;

std::string counted(unsigned n, std::string_view thing) { return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s"); }

}  // namespace

std::optional<double> recording_cost(const Diagnosis& diagnosis) {
  const auto sweep = diagnosis.experiment.sweep();
  if (sweep.empty() || !diagnosis.recorded_trial) return std::nullopt;
  const auto* cell = diagnosis.experiment.find(0, sweep.back());
  if (cell == nullptr || cell->trials.empty()) return std::nullopt;
  std::vector<double> costs;
  for (const auto& trial : cell->trials) costs.push_back(trial.cost());
  return diagnosis.recorded_trial->cost() / median(costs) - 1;
}

std::string describe(const Setting& setting) {
  if (setting.copies > 1) return fmt::format("{} copies", setting.copies);
  return setting.threads != 0 ? counted(setting.threads, "thread") : counted(setting.cpus, "CPU");
}

std::string describe(const freehold::doctor::Experiment& experiment, std::size_t variant, const Setting& setting) {
  return fmt::format("{}, {}", experiment.variants[variant].name, describe(setting));
}

}  // namespace freehold::cli::doctor
