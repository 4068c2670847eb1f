// SPDX-License-Identifier: MIT
#include "cli/doctor/diagnosis.hpp"

#include <fmt/format.h>

#include "freehold/doctor/analysis/derived.hpp"

namespace freehold::cli::doctor {
namespace {
using freehold::doctor::Setting;

std::string counted(unsigned n, std::string_view thing) { return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s"); }

}  // namespace

std::optional<double> recording_cost(const Diagnosis& diagnosis) {
  const auto sweep = diagnosis.experiment.sweep();
  if (sweep.empty() || !diagnosis.recorded_trial) return std::nullopt;
  const auto before = freehold::doctor::if_measured(freehold::doctor::cost, diagnosis.experiment.find(0, sweep.back()));
  return before ? std::optional(diagnosis.recorded_trial->cost() / *before - 1) : std::nullopt;
}

std::string describe(const Setting& setting) {
  if (setting.copies > 1) return fmt::format("{} copies", setting.copies);
  return setting.threads != 0 ? counted(setting.threads, "thread") : counted(setting.cpus, "CPU");
}

std::string describe(const freehold::doctor::Experiment& experiment, std::size_t variant, const Setting& setting) {
  return fmt::format("{}, {}", experiment.variants[variant].name, describe(setting));
}

}  // namespace freehold::cli::doctor
