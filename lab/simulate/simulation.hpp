// SPDX-License-Identifier: MIT
// The experiment of `freehold simulate`: runs the whole engine on simulated cores (sim/engine), one row after the other.
// The figures are the same on every machine.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lab/experiment/series.hpp"
#include "sim/engine/whole_engine.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/interrupts.hpp"

namespace freehold::lab::simulate {

using sim::EngineWorkload;
using sim::name_of;

struct Settings {
  std::vector<EngineWorkload> workloads{sim::kEngineWorkloads.begin(), sim::kEngineWorkloads.end()};
  std::vector<std::uint32_t> sizes{16, 64, 512, 4096, 32768, 65536, 262144, 1048576};  // bytes, ascending
  std::vector<std::uint32_t> cores{1, 2, 4, 8, 16, 32, 64, 128, 256};                  // ascending
  std::uint32_t quantum = 1;     // accesses to memory before another core gets its turn
  std::uint32_t pairs = 0;       // pairs on each core; 0: enough for the size
  std::uint32_t nodes = 1;       // memory nodes
  std::uint32_t far_cost = 250;  // cost of a line that another node serves, in percent of one at home
  std::uint32_t places = 0;      // to list for each row, on the greatest number of cores
};

// One workload and size, with the counts for each number of cores that was simulated.
struct Row {
  EngineWorkload workload;
  std::uint32_t bytes = 0;
  std::vector<sim::EngineCount> counts;
};

struct Results : RunRecord {
  Settings settings;
  std::vector<Row> rows;

  [[nodiscard]] static bool has_failures() { return false; }  // a simulation cannot fail
};

// A row counts as flat if its misses grow by no more than this from 4 cores on.
inline constexpr unsigned kFlatFrom = 4;
inline constexpr double kFlatRatio = 1.1;
inline constexpr double kFlatSlack = 0.1;  // misses per pair

// Tells whether the row's misses are flat from kFlatFrom cores on. None: kFlatFrom cores, or more, were not simulated.
[[nodiscard]] std::optional<bool> is_flat(const Settings& settings, const Row& row);

// The part of lines that another node serves.
[[nodiscard]] inline double far_share(const sim::EngineCount& count) {
  return count.served == 0 ? 0 : static_cast<double>(count.far) / static_cast<double>(count.served);
}
// The cost of the lines of a pair, if one at home costs 1.
[[nodiscard]] inline double line_cost(const Settings& settings, const sim::EngineCount& count) {
  return count.per_pair(count.served - count.far) + count.per_pair(count.far) * settings.far_cost / 100;
}

// Ends early at an interrupt, between two counts.
[[nodiscard]] Results run(const Settings& settings, Interrupts& interrupts, Progress& progress);

// docs/simulate.md lists the fields.
[[nodiscard]] nlohmann::ordered_json results_json(const Results& results);
// For a terminal: coherence misses and lock hand-overs per pair, by cores, and the places of the misses.
[[nodiscard]] std::string table_of(const Results& results);
// The subcommand: its options, and its action after the parsing, which returns the exit code.
void add_options(Command& command);
[[nodiscard]] int run_command();

}  // namespace freehold::lab::simulate
