// Set after set of measurements: every set measures each cell once, in an order of its own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "cli/support/worker_process.hpp"

namespace freehold::cli {

// `order`(set) gives the cells' indices, `tell`(done, of, cell) hears of each measurement before it begins,
// `measure`(cell, set) takes it: false if it was interrupted. Returns false as soon as one was.
[[nodiscard]] bool measure_sets(std::uint32_t sets, std::size_t cells, auto order, auto tell, auto measure) {
  std::size_t done = 0;
  for (std::uint32_t set = 0; set < sets; ++set) {
    for (const std::size_t cell : order(set)) {
      tell(done++, cells * sets, cell);
      if (!measure(cell, set)) return false;
    }
  }
  return true;
}

// Puts a measurement's report in the set's place of `series`, as `sample_of` sees it; or says why there is none. False:
// interrupted.
template <class Report, class Series>
[[nodiscard]] bool keep(const std::variant<Report, NoReport, Interrupted>& measured, Series& series, std::uint32_t set,
                        auto sample_of) {
  if (std::holds_alternative<Interrupted>(measured)) return false;
  if (const NoReport* none = std::get_if<NoReport>(&measured)) {
    series.failure = none->why;
    return true;
  }
  series.samples.resize(set + 1);
  series.samples[set] = sample_of(std::get<Report>(measured));
  return true;
}

}  // namespace freehold::cli
