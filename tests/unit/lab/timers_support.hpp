// SPDX-License-Identifier: MIT
// Results made by hand, for tests of what is computed from them.
#pragma once
#include <functional>
#include <string>

#include "lab/timers/results.hpp"

namespace freehold::cli::timers {

// Nanoseconds of CPU per operation, in each phase of a cell in a set.
using CellCost = std::function<double(const Cell&, std::size_t set)>;

inline constexpr std::size_t kReferenceAt = 0, kPrivateAt = 1, kWheelAt = 2, kPeerAt = 3, kBaselineAt = 4;

inline const Candidate* made_up_structure(std::size_t i) {
  const auto run = [](const Job&) { return Report{}; };
  static const Candidate all[] = {{std::string(kReference), "containers", Kind::kOurs, false, run, run},
                                  {std::string(kPrivate), "a private heap", Kind::kOurs, false, run, run},
                                  {std::string(kWheel), "a wheel", Kind::kOurs, false, run, run},
                                  {"libuv", "somebody's", Kind::kLibrary, false, run, nullptr},
                                  {std::string(kBaseline), "memory", Kind::kBaseline, false, run, nullptr}};
  return &all[i];
}

inline Results results_with(const CellCost& cost, std::uint32_t repeat = 3) {
  constexpr std::uint64_t kOperations = 1'000'000;
  Results results;
  for (const std::size_t i : {kReferenceAt, kPrivateAt, kWheelAt, kPeerAt, kBaselineAt})
    results.settings.structures.push_back(made_up_structure(i));
  results.settings.repeat = repeat;
  results.machine.cpus = 2;
  results.machine.cpu_model = "a CPU";
  for (const Cell& cell : cells_of(results.settings)) {
    Series series{.cell = cell, .samples = {}, .failure = {}};
    for (std::uint32_t set = 0; set < repeat; ++set) {
      Sample sample;
      sample.peak_rss_bytes = 1 << 20;
      for (const Phase phase : phases_of(cell.row.test)) {
        if (phase == Phase::kAll) continue;
        const auto ns = static_cast<std::uint64_t>(cost(cell, set) * static_cast<double>(kOperations));
        sample.costs[static_cast<std::size_t>(phase)] = {
            .operations = kOperations, .cpu_ns = ns, .wall_ns = 2 * ns, .sleeps = 500, .waits = 250};
      }
      series.samples.push_back(sample);
    }
    results.series.push_back(std::move(series));
  }
  return results;
}

// All that is wanted is reached, but that the wheel suffers from the heap's users.
inline double wheel_suffers(const Cell& cell, std::size_t set) {
  const double noise = 1 + 0.01 * static_cast<double>(set);
  switch (cell.structure) {
    case kReferenceAt: return 200 * noise;
    case kPrivateAt: return 100 * noise;
    case kWheelAt: return cell.load == Load::kHeap ? 20 : 10;
    case kBaselineAt: return 5;
    default: return 150;
  }
}

}  // namespace freehold::cli::timers
