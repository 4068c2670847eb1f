// SPDX-License-Identifier: MIT
// The plan of `freehold pools`: its rows, cells and their order. Every set measures each cell once, in an order of its own.
// The pools of a row follow each other, so that a disturbance of the machine falls on all of them.
#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "lab/pools/candidates.hpp"
#include "lab/pools/job.hpp"

namespace freehold::cli::pools {

struct Settings {
  std::vector<const Candidate*> pools;
  std::vector<Trial> tests{kTests.begin(), kTests.end()};
  std::vector<Context> contexts{kContexts.begin(), kContexts.end()};
  std::uint32_t threads = 8;
  std::uint64_t operations = 1'000'000;  // of each thread
  std::uint32_t slot_bytes = 12;
  std::uint32_t repeat = 5;
  std::uint32_t milliseconds = 150;  // time limit of a measurement, about
  // Article 1's experiment.
  std::vector<std::uint32_t> crc_threads{8, 16, 32};
  std::vector<std::uint32_t> crc_pools{1, 2, 4, 8, 16};
  std::uint32_t crc_bytes = 64;
  std::uint32_t crc_reads = 4;  // for each write; a writer does `operations`, a reader this many times as many
  bool simulate = false;        // count coherence misses on simulated cores, too
};

// One line of the tables, in which the pools are compared.
struct Row {
  Trial test = Trial::kShort;
  Context context = Context::kFresh;
  std::uint32_t threads = 1;

  friend auto operator<=>(const Row&, const Row&) = default;
};

// One cell of the tables: measured once in every set.
struct Cell {
  Row row;
  std::size_t pool = 0;      // of Settings::pools
  std::uint32_t shards = 0;  // of a distributed pool in article 1's experiment; 0: the default
  bool counted = false;

  [[nodiscard]] Row group() const { return row; }
  friend bool operator==(const Cell&, const Cell&) = default;
};

// "short, polluted"; "crc, 16 threads"
[[nodiscard]] std::string text_of(const Row& row);
// The pools of these names, "best-pool,boost-pool", in the order of the tables. Throws Failure.
[[nodiscard]] std::vector<const Candidate*> parse_pools(const std::string& text);
// In the order of the tables.
[[nodiscard]] std::vector<Row> rows_of(const Settings& settings);
// The numbers of pools that a candidate distributes its slots over in a row; 0: the default.
[[nodiscard]] std::vector<std::uint32_t> shards_of(const Settings& settings, const Row& row, const Candidate& candidate);
// Every cell of the experiments. A candidate that does not take part in a row has no cell there.
[[nodiscard]] std::vector<Cell> cells_of(const Settings& settings);
[[nodiscard]] Job job_of(const Settings& settings, const Cell& cell);

}  // namespace freehold::cli::pools
