// SPDX-License-Identifier: MIT
// Carries an experiment out: measures every cell once in each set, and keeps what it has when the user interrupts it.
//
// A subcommand gives its cells, a measurement and a description for the progress line; this header holds the
// loop. A cell that failed once is not measured again, because it would fail again, perhaps only at its time limit.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <utility>
#include <variant>
#include <vector>

#include "cli/support/interrupts.hpp"
#include "lab/experiment/measure.hpp"
#include "lab/experiment/series.hpp"

namespace freehold::cli {

// The order of measurements: random, but measurements that will be compared follow each other.

// The indices 0…count-1 in a random order given by `seed`, with the indices of one group side by side, at the place of the
// group's first index. group(i) returns any ordered value. Groups, and the indices within a group, keep the random order.
template <class Group>
[[nodiscard]] std::vector<std::size_t> shuffled_groups(std::size_t count, std::uint32_t seed, Group group) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);
  std::ranges::shuffle(order, random);
  std::vector<std::size_t> place(count);
  std::map<decltype(group(0)), std::size_t> place_of_group;
  for (std::size_t i = 0; i < count; ++i) {
    place[order[i]] = i;
    place_of_group.try_emplace(group(order[i]), i);
  }
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(place_of_group.at(group(i)), place[i]); });
  return order;
}

// Puts a measurement into the place of `set`, or notes why there is none. False: interrupted.
template <class Report, class Cell, class Sample>
[[nodiscard]] bool keep(const Measured<Report>& measured, CellSeries<Cell, Sample>& series, std::uint32_t set,
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

// Every set has an order of its own, in which cells with the same group() follow each other. describe(cell) -> text for the
// progress line; measure(series) -> Measured<Report>; sample_of(report) -> Sample. Returns false as soon as a measurement is
// interrupted.
template <class Cell, class Sample>
[[nodiscard]] bool measure_sets(std::uint32_t sets, std::vector<CellSeries<Cell, Sample>>& series, Progress& progress,
                                auto describe, auto measure, auto sample_of) {
  std::size_t done = 0;
  for (std::uint32_t set = 0; set < sets; ++set) {
    for (const std::size_t i :
         shuffled_groups(series.size(), set, [&](std::size_t at) { return series[at].cell.group(); })) {
      progress.show(done++, series.size() * sets, describe(series[i].cell));
      if (!series[i].failure.empty()) continue;
      if (!keep(measure(series[i]), series[i], set, sample_of)) return false;
    }
  }
  return true;
}

// Calls measure(), which returns whether it was completed, and notes where, when and how long that was.
void record_run(RunRecord& record, auto measure) {
  record.machine = this_machine();
  record.date = today();
  const auto begin = std::chrono::steady_clock::now();
  const double others_s = cpu_seconds_of_others();
  record.complete = measure();
  record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  record.others = std::max(0.0, cpu_seconds_of_others() - others_s) / (record.seconds * record.machine.cpus);
}

}  // namespace freehold::cli
