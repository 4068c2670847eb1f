// SPDX-License-Identifier: MIT
// The measurements of `freehold pools`, and the figures computed from them: medians, spreads, the best pool of each row.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/experiment/series.hpp"
#include "lab/pools/plan.hpp"
#include "lab/pools/simulate.hpp"

namespace freehold::cli::pools {

// The strategy that is compared with all others: BestPool.
inline constexpr std::string_view kOurs = "best";
// The same for rows of one thread, in which pools without locks take part.
inline constexpr std::string_view kOursAlone = "single-thread";

struct Sample {
  std::uint64_t elapsed_ns = 0;
  std::uint64_t operations = 0;  // acquire/release pairs of all threads
  std::uint64_t failures = 0;
  std::uint64_t counted = 0;
  std::uint64_t conflicts = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t peak_rss_bytes = 0;
};

using Series = CellSeries<Cell, Sample>;

struct Results : ExperimentResults<Settings, Cell, Sample> {
  std::vector<Simulated> simulated;  // with --simulate

  using ExperimentResults::find;
  [[nodiscard]] const Series* find(const Row& row, std::size_t pool, std::uint32_t shards = 0, bool counted = false) const;
};

// Nanoseconds per acquire/release pair over all threads: of every measured set, and their median.
[[nodiscard]] std::vector<double> costs_of(const Series& series);
[[nodiscard]] std::optional<double> cost(const Series* series);
// Conflicts as a share of the counted operations: the median.
[[nodiscard]] std::optional<double> contention(const Series* series);
// Whether the sets had fewer operations than wished, because they took too long.
[[nodiscard]] bool is_shortened(const Results& results, const Series& series);

// Our pool in a row; null: it was not measured.
[[nodiscard]] const Candidate* ours_in(const Results& results, const Row& row);
// A row in which our pool and another one were measured. The baseline is no pool.
struct Comparison {
  Row row;
  double ours = 0;   // nanoseconds
  double other = 0;  // of the best of the others
  std::string name;  // of that one
  double least = 0;  // ratio ours / other in the sets: least and greatest
  double greatest = 0;

  [[nodiscard]] double ratio() const { return ours / other; }
};
// Lost rows first.
[[nodiscard]] std::vector<Comparison> comparisons(const Results& results);
// The best pool of a row; null if nothing was measured.
[[nodiscard]] const Series* best_of(const Results& results, const Row& row, std::string_view except = {});
// Sentences about shortened tests, spread, failures and interruption.
[[nodiscard]] std::vector<std::string> notes_of(const Results& results);
// The failed measurements, a sentence each.
[[nodiscard]] std::vector<std::string> failures_of(const Results& results);

}  // namespace freehold::cli::pools
