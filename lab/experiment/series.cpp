// SPDX-License-Identifier: MIT
#include "lab/experiment/series.hpp"

#include <fmt/format.h>

#include "tools/support/statistics.hpp"

namespace freehold::lab {

void note_spread(double limit, const std::vector<Sets>& medians, std::vector<std::string>& notes) {
  std::size_t all = 0, wide = 0;
  double widest = 0;
  for (const Sets& sets : medians) {
    if (!median_of(sets)) continue;
    ++all;
    wide += spread_of(sets) > limit ? 1 : 0;
    widest = std::max(widest, spread_of(sets));
  }
  if (wide == 0) return;
  notes.push_back(fmt::format("{} of {} medians come from sets that differ by more than {:.0f}% (the worst by {:.0f}%).",
                              wide, all, 100 * limit, 100 * widest));
}

void note_busy(const std::vector<double>& others, std::vector<std::string>& notes) {
  const auto busy = std::ranges::count_if(others, [](double share) { return share > kBusyMachine; });
  if (busy == 0) return;
  notes.push_back(
      fmt::format("Other programs had more than {:.0f}% of the CPUs beside {} of {} measurements, up to {:.0f}%: nothing is "
                  "decided by those. Repeat this on a quiet machine.",
                  100 * kBusyMachine, busy, others.size(), 100 * std::ranges::max(others)));
}

double spread_of(const Sets& sets) { return spread(known(sets)); }

}  // namespace freehold::lab
