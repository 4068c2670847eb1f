// SPDX-License-Identifier: MIT
#include "lab/experiment/series.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/support/statistics.hpp"

namespace freehold::cli {

std::string failure_note(std::string_view name, std::string_view row, std::string_view why) {
  return fmt::format("{} failed in {}: {}.", name, row, why);
}

void SpreadNote::add(std::span<const double> figures) {
  if (figures.empty()) return;
  const double value = spread(figures);
  ++medians_;
  wide_ += value > limit_ ? 1 : 0;
  widest_ = std::max(widest_, value);
}

void SpreadNote::write_to(std::vector<std::string>& notes) const {
  if (wide_ == 0) return;
  notes.push_back(fmt::format("{} of {} medians come from sets that differ by more than {:.0f}% (the worst by {:.0f}%).",
                              wide_, medians_, 100 * limit_, 100 * widest_));
}

}  // namespace freehold::cli
