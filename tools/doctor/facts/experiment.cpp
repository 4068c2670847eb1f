// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/experiment.hpp"

#include <algorithm>
#include <array>

namespace freehold::doctor {

const Cell* Experiment::find(std::size_t variant, const Setting& setting) const noexcept {
  const auto found =
      std::ranges::find_if(cells, [&](const Cell& cell) { return cell.variant == variant && cell.setting == setting; });
  return found == cells.end() ? nullptr : &*found;
}

const Variant* Experiment::find(Treatment treatment) const noexcept {
  const auto found = std::ranges::find(variants, treatment, &Variant::treatment);
  return found == variants.end() ? nullptr : &*found;
}

std::vector<Setting> Experiment::sweep() const {
  std::vector<Setting> settings;
  for (const Cell& cell : cells) {
    if (cell.setting.copies == 1 && std::ranges::count(settings, cell.setting) == 0) settings.push_back(cell.setting);
  }
  std::ranges::sort(settings, [](const Setting& a, const Setting& b) {
    return a.width() != b.width() ? a.width() < b.width() : a.threads < b.threads;
  });
  return settings;
}

std::string_view name_of(Treatment treatment) noexcept {
  static constexpr std::array<std::string_view, 6> kNames{"none",     "capped-arenas", "padded",
                                                          "freehold", "peer",          "high-thresholds"};
  return kNames[static_cast<std::size_t>(treatment)];
}

std::string_view name_of(ParallelismControl parallelism) noexcept {
  static constexpr std::array<std::string_view, 3> kNames{"affinity", "environment", "argument"};
  return kNames[static_cast<std::size_t>(parallelism)];
}

}  // namespace freehold::doctor
