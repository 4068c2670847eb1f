// SPDX-License-Identifier: MIT
#include "tools/support/units.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>

namespace freehold::inline tools {

std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, unit > 0 && value < 9.95 ? 1 : 0, kUnits[unit]);
}

}  // namespace freehold::inline tools
