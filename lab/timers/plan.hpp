// SPDX-License-Identifier: MIT
// The plan of `freehold timers`: its rows, cells and their order. Every set measures each cell once, in an order of its own.
// The structures of a row, under every load, follow each other, so that a disturbance of the machine falls on all of them.
#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "lab/timers/candidates.hpp"
#include "lab/timers/job.hpp"

namespace freehold::cli::timers {

struct Settings {
  std::vector<const Candidate*> structures;
  std::vector<Trial> tests{kTests.begin(), kTests.end()};
  std::vector<Load> loads{kLoads.begin(), kLoads.end()};
  std::uint32_t count = 100'000;                                       // timers of the tests in which they are handled
  std::uint32_t cancelled = 65'536;                                    // of cancel
  std::vector<std::uint32_t> live{1'000, 10'000, 100'000, 1'000'000};  // of rearm
  std::uint32_t shared = 100'000;                                      // of shared
  std::vector<std::uint32_t> users{1, 4};                              // threads of shared
  std::uint32_t background = 8;                                        // threads of a load
  std::uint32_t repeat = 3;
  std::uint32_t milliseconds = 100;  // of CPU time of each user that a measurement takes, about
  std::string freehold_library;      // for the structures that preload it
};

// One line of the tables, in which the structures are compared.
struct Row {
  Trial test = Trial::kRandom;
  std::uint32_t timers = 0;
  std::uint32_t users = 1;

  friend auto operator<=>(const Row&, const Row&) = default;
};

// Measured once in every set.
struct Cell {
  Row row;
  Load load = Load::kAlone;
  std::size_t structure = 0;  // of Settings::structures

  [[nodiscard]] Row group() const { return row; }
  friend bool operator==(const Cell&, const Cell&) = default;
};

// "random, 100000"; "shared, 100000, 4 users"
[[nodiscard]] std::string text_of(const Row& row);
// The structures of these names, "wheel,libuv", in the order of the tables. Throws Failure.
[[nodiscard]] std::vector<const Candidate*> parse_structures(const std::string& text);
// In the order of the tables.
[[nodiscard]] std::vector<Row> rows_of(const Settings& settings);
// Every cell of the experiment. A structure that does not take part in a row has no cell there.
[[nodiscard]] std::vector<Cell> cells_of(const Settings& settings);
[[nodiscard]] Job job_of(const Settings& settings, const Cell& cell);

}  // namespace freehold::cli::timers
