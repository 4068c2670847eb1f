// What was measured, and what follows from it by arithmetic alone: medians, spreads, the best of every row.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/pools/plan.hpp"
#include "cli/pools/simulate.hpp"
#include "cli/support/machine.hpp"
#include "cli/support/statistics.hpp"
#include "freehold/pool/best_pool.hpp"

namespace freehold::cli::pools {

// The strategy that is compared with all others: BestPool.
inline constexpr std::string_view kOurs = pool::Best::kName;
// The same for rows of one thread, where pools without locks take part.
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

struct Series {
  Cell cell;
  std::vector<std::optional<Sample>> samples;  // one place for each set that was begun
  std::string failure;                         // why a sample is missing, if not for lack of time
};

struct Results {
  Settings settings;
  Machine machine;
  std::string date;
  std::vector<Series> series;        // in the order of cells_of(settings)
  std::vector<Simulated> simulated;  // if that was asked for
  bool complete = true;              // false: interrupted
  double seconds = 0;                // that it all took

  [[nodiscard]] const Series* find(const Row& row, std::size_t pool, std::uint32_t shards = 0, bool counted = false) const;
};

// Nanoseconds per acquire/release pair over all threads: of every set that was measured, and their median.
[[nodiscard]] std::vector<double> costs_of(const Series& series);
[[nodiscard]] std::optional<double> cost(const Series* series);
// Conflicts as a share of the counted operations: the median.
[[nodiscard]] std::optional<double> contention(const Series* series);
// Whether the sets had fewer operations than asked for, because they took too long.
[[nodiscard]] bool is_shortened(const Results& results, const Series& series);

// Which of ours a row is about: null if it was not measured.
[[nodiscard]] const Contender* ours_in(const Results& results, const Row& row);
// A row in which ours and another pool were measured: the floor is no pool.
struct Comparison {
  Row row;
  double ours = 0;   // nanoseconds
  double other = 0;  // of the best of the others
  std::string name;  // of that one
  double least = 0;  // ratio ours / other in the sets: least and greatest
  double greatest = 0;

  [[nodiscard]] double ratio() const { return ours / other; }
};
// Rows that we lose first.
[[nodiscard]] std::vector<Comparison> comparisons(const Results& results);
// The best of a row among those that are pools; null if nothing was measured.
[[nodiscard]] const Series* best_of(const Results& results, const Row& row, std::string_view except = {});
// What a reader must know beside the figures: shortened tests, spread, failures, interruption.
[[nodiscard]] std::vector<std::string> notes_of(const Results& results);

}  // namespace freehold::cli::pools
