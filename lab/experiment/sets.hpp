// SPDX-License-Identifier: MIT
// Arithmetic on figures that were measured in every set. It works set by set, so that a disturbance of the machine falls on
// both sides of a ratio. A set in which one side is missing is left out.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace freehold::lab {

// One place for each set; none: there is no figure.
using Sets = std::vector<std::optional<double>>;

// f of the figures of one set, for every set that all of `figures` have. Pre: not empty.
[[nodiscard]] Sets combine(const std::vector<Sets>& figures, const std::function<double(const std::vector<double>&)>& f);
[[nodiscard]] Sets quotient(const Sets& a, const Sets& b);
[[nodiscard]] Sets least_of(const std::vector<Sets>& figures);
[[nodiscard]] Sets greatest_of(const std::vector<Sets>& figures);
[[nodiscard]] Sets mean_of(const std::vector<Sets>& figures);  // geometric

// The figures that there are.
[[nodiscard]] std::vector<double> known(const Sets& sets);
[[nodiscard]] std::optional<double> median_of(const Sets& sets);

// The median, the least and the greatest of the sets.
struct Range {
  double median = 0;
  double least = 0;
  double greatest = 0;
};
// None: no set has a figure.
[[nodiscard]] std::optional<Range> range_of(const Sets& sets);

// Three digits that count; a dash for nothing.
[[nodiscard]] std::string figure_text(std::optional<double> value, const char* dash = "–");
[[nodiscard]] std::string figure_text(const Sets& sets);

}  // namespace freehold::lab
