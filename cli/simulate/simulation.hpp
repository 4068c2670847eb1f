// The whole engine on simulated cores (sim/engine): what is asked for, and what came out. The figures are the same on every
// machine; one row after the other.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/support/interrupts.hpp"
#include "cli/support/machine.hpp"
#include "cli/support/progress.hpp"
#include "sim/engine/whole_engine.hpp"

namespace freehold::cli::simulate {

using sim::EngineWorkload;
using sim::name_of;

struct Settings {
  std::vector<EngineWorkload> workloads{sim::kEngineWorkloads.begin(), sim::kEngineWorkloads.end()};
  std::vector<std::uint32_t> sizes{16, 64, 512, 4096, 32768, 65536, 262144, 1048576};  // bytes, ascending
  std::vector<std::uint32_t> cores{1, 2, 4, 8, 16, 32, 64, 128, 256};                  // ascending
  std::uint32_t quantum = 1;  // accesses after which another core goes on
  std::uint32_t pairs = 0;    // of each core; 0: enough for the size
  std::uint32_t places = 0;   // to be named for each row, on the greatest number of cores
};

// One workload and size, and the counts for each number of cores, as far as it came.
struct Row {
  EngineWorkload workload;
  std::uint32_t bytes = 0;
  std::vector<sim::EngineCount> counts;
};

struct Results {
  Settings settings;
  Machine machine;
  std::string date;  // UTC, ISO 8601
  std::vector<Row> rows;
  bool complete = true;  // false: interrupted
  double seconds = 0;    // that it all took
};

// Misses may grow by so much from 4 cores on, and count as flat.
inline constexpr unsigned kFlatFrom = 4;
inline constexpr double kFlatRatio = 1.1;
inline constexpr double kFlatSlack = 0.1;  // misses per pair

// Whether the row's misses are flat from kFlatFrom cores on; none if that many, or more, were not simulated.
[[nodiscard]] std::optional<bool> is_flat(const Settings& settings, const Row& row);

// Ends early at an interrupt, between two counts.
[[nodiscard]] Results run(const Settings& settings, Interrupts& interrupts, Progress& progress);

}  // namespace freehold::cli::simulate
