// SPDX-License-Identifier: MIT
// Medians, spreads and means of a few measurements.
#pragma once
#include <optional>
#include <span>
#include <vector>

namespace freehold::inline tools {

// Pre: not empty. Of an even number the mean of the two in the middle.
[[nodiscard]] double median(std::vector<double> values);
// None: there are no values.
[[nodiscard]] std::optional<double> median_if_any(std::vector<double> values);
// (greatest − least) / median; 0 for fewer than two values.
[[nodiscard]] double spread(std::span<const double> values);
// Pre: not empty, all positive.
[[nodiscard]] double geometric_mean(std::span<const double> values);

}  // namespace freehold::inline tools
