// SPDX-License-Identifier: MIT
// Parses times and percentages of options. Each function throws Failure(kExitRefused) with one line that names the option.
#pragma once
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include "tools/support/failure.hpp"

namespace freehold::inline tools {

// "10", "2.5s", "300ms", "2m", "1h" -> seconds, more than none.
[[nodiscard]] inline double parse_seconds(const std::string& option, const std::string& text) {
  constexpr double kLongest_s = 1e6;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, text.data() + text.size());
  const double factor = unit.empty() || unit == "s" ? 1 : unit == "ms" ? 1e-3 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (error != std::errc() || !std::isfinite(value) || value * factor <= 0 || value * factor > kLongest_s)
    throw Failure(kExitRefused, fmt::format("{}: '{}' is not a time: 10, 2.5s, 300ms, 2m", option, printable(text)));
  return value * factor;
}

// "10%" -> 0.1
[[nodiscard]] inline double parse_percentage(const std::string& option, const std::string& text) {
  constexpr double kMost = 1000;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || std::string_view(end, text.data() + text.size()) != "%" || !(value >= 0 && value <= kMost))
    throw Failure(kExitRefused, fmt::format("{}: '{}' is not a percentage: 10%, 2.5%", option, printable(text)));
  return value / 100;
}

}  // namespace freehold::inline tools
