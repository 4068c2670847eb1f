// SPDX-License-Identifier: MIT
#include "cli/stats/sample.hpp"

namespace freehold::cli::stats {

std::optional<double> per_second(std::uint64_t now, std::uint64_t before, double seconds) {
  if (seconds <= 0) return std::nullopt;
  return now > before ? static_cast<double>(now - before) / seconds : 0.0;
}

}  // namespace freehold::cli::stats
