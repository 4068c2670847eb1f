// SPDX-License-Identifier: MIT
#include "tools/support/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace freehold::inline tools {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::optional<double> median_if_any(std::vector<double> values) {
  return values.empty() ? std::nullopt : std::optional(median(std::move(values)));
}

double spread(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const auto [least, greatest] = std::ranges::minmax(values);
  return (greatest - least) / median({values.begin(), values.end()});
}

double geometric_mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace freehold::inline tools
