// What was measured, and what follows from it by arithmetic alone: medians, ratios within the sets, the article's claims.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/support/machine.hpp"
#include "cli/timers/plan.hpp"

namespace freehold::cli::timers {

struct Sample {
  std::array<Cost, kPhases> costs{};
  std::uint64_t background_operations = 0;
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
  std::vector<Series> series;  // in the order of cells_of(settings)
  bool complete = true;        // false: interrupted
  double seconds = 0;          // that it all took

  [[nodiscard]] const Series* find(const Row& row, Load load, std::size_t structure) const;
  [[nodiscard]] const Series* find(const Row& row, Load load, std::string_view structure) const;
};

// What of a Cost is meant: nanoseconds per operation, or events per thousand operations.
enum class Figure : std::uint8_t { kCpu, kWall, kSleeps, kWaits };

[[nodiscard]] double figure_of(const Sample& sample, Trial test, Phase phase, Figure figure);
// Of every set that was measured; their median.
[[nodiscard]] std::vector<double> figures_of(const Series& series, Phase phase, Figure figure);
[[nodiscard]] std::optional<double> median_of(const Series* series, Phase phase, Figure figure);

// One figure divided by another: in each set, then the median of the sets.
struct Ratio {
  double median = 0;
  double least = 0;
  double greatest = 0;
};
[[nodiscard]] std::optional<Ratio> ratio_of(const Series* series, const Series* other, Phase phase, Figure figure);

// What the structures must reach, as far as it was measured.
struct Target {
  std::string text;
  Ratio ratio;
  double wanted = 0;
  bool at_least = true;  // else at most

  [[nodiscard]] bool is_reached() const { return at_least ? ratio.median >= wanted : ratio.median <= wanted; }
};
[[nodiscard]] std::vector<Target> targets_of(const Results& results);
// What a reader must know beside the figures: spread, failures, interruption.
[[nodiscard]] std::vector<std::string> notes_of(const Results& results);

}  // namespace freehold::cli::timers
