// SPDX-License-Identifier: MIT
#include "lab/experiment/sets.hpp"

#include <algorithm>

#include "tools/output/text.hpp"
#include "tools/support/statistics.hpp"

namespace freehold::lab {

Sets combine(const std::vector<Sets>& figures, const std::function<double(const std::vector<double>&)>& f) {
  Sets result(std::ranges::min(figures, {}, &Sets::size).size());
  for (std::size_t set = 0; set < result.size(); ++set) {
    std::vector<double> values;
    for (const Sets& one : figures) {
      if (one[set]) values.push_back(*one[set]);
    }
    if (values.size() == figures.size()) result[set] = f(values);
  }
  return result;
}

Sets quotient(const Sets& a, const Sets& b) {
  Sets result = combine({a, b}, [](const std::vector<double>& v) { return v[1] > 0 ? v[0] / v[1] : 0; });
  for (std::size_t set = 0; set < result.size(); ++set) {
    if (b[set] && *b[set] <= 0) result[set].reset();
  }
  return result;
}
Sets least_of(const std::vector<Sets>& figures) {
  return combine(figures, [](const std::vector<double>& v) { return std::ranges::min(v); });
}
Sets greatest_of(const std::vector<Sets>& figures) {
  return combine(figures, [](const std::vector<double>& v) { return std::ranges::max(v); });
}
Sets mean_of(const std::vector<Sets>& figures) {
  return combine(figures, [](const std::vector<double>& v) { return geometric_mean(v); });
}

std::vector<double> known(const Sets& sets) {
  std::vector<double> values;
  for (const auto& value : sets) {
    if (value) values.push_back(*value);
  }
  return values;
}

std::optional<double> median_of(const Sets& sets) { return median_if_any(known(sets)); }

std::optional<Range> range_of(const Sets& sets) {
  const std::vector<double> values = known(sets);
  if (values.empty()) return std::nullopt;
  const auto [least, greatest] = std::ranges::minmax(values);
  return Range{median(values), least, greatest};
}

std::string figure_text(std::optional<double> value, const char* dash) { return value ? three_digits(*value) : dash; }
std::string figure_text(const Sets& sets) { return figure_text(median_of(sets)); }

}  // namespace freehold::lab
