// What was measured, and what follows from it by arithmetic alone: medians, spreads, and speed relative to one worker.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/scale/plan.hpp"
#include "cli/support/machine.hpp"
#include "cli/support/statistics.hpp"

namespace freehold::cli::scale {

struct Sample {
  std::uint64_t elapsed_ns = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t peak_rss_bytes = 0;
};

struct Series {
  Cell cell;
  std::uint64_t units = 0;                     // of work in an iteration
  std::vector<std::optional<Sample>> samples;  // one place for each set that was begun
  std::string failure;                         // why a sample is missing, if not for lack of time
};

struct Results {
  Settings settings;
  Machine machine;
  std::string date;            // UTC, ISO 8601
  std::vector<Series> series;  // in the order of cells_of(settings)
  bool complete = true;        // false: interrupted
  double seconds = 0;          // that it all took
  std::vector<std::string> notes;

  [[nodiscard]] const Series* find(const Cell& cell) const;
};

[[nodiscard]] Job job_of(const Results& results, const Series& series);
// In seconds, of the sets that were measured.
[[nodiscard]] std::vector<double> times_of(const Series& series);
[[nodiscard]] std::optional<double> median_time(const Series* series);
[[nodiscard]] std::optional<double> nanoseconds_per_operation(const Results& results, const Series* series);
[[nodiscard]] std::optional<std::uint64_t> peak_rss(const Series* series);
// The fewest workers of the same test, mode and subject: one, or one pair.
[[nodiscard]] const Series* base_of(const Results& results, const Cell& cell);
// How many times as fast as the base: from the medians; and in one set.
[[nodiscard]] std::optional<double> speed(const Results& results, const Cell& cell);
[[nodiscard]] std::optional<double> speed_in_set(const Results& results, const Cell& cell, std::size_t set);
// The best speed that `cpus` CPUs allow for these shares of the iterations.
[[nodiscard]] double ideal_speed(std::uint32_t iterations, std::uint32_t workers, unsigned cpus);

}  // namespace freehold::cli::scale
