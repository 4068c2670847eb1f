// SPDX-License-Identifier: MIT
#include "lab/timers/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "lab/experiment/series.hpp"

namespace freehold::cli::timers {
namespace {

constexpr double kWideSpread = 0.25;

Cost sum_of(const Sample& sample) {
  Cost sum;
  for (const Cost& cost : sample.costs) sum += cost;
  return sum;
}

double value_of(const Cost& cost, Figure figure) {
  switch (figure) {
    case Figure::kCpu: return static_cast<double>(cost.cpu_ns);
    case Figure::kWall: return static_cast<double>(cost.wall_ns);
    case Figure::kSleeps: return 1e3 * static_cast<double>(cost.sleeps);
    case Figure::kWaits: return 1e3 * static_cast<double>(cost.waits);
  }
  __builtin_unreachable();
}

Ratio ratio_within(const std::vector<double>& ratios) {
  const auto [least, greatest] = std::ranges::minmax(ratios);
  return {median(ratios), least, greatest};
}

// (series / its baseline) / (other / its baseline), in the sets that have all four.
std::optional<Ratio> ratio_over_baselines(const Series* series, const Series* baseline, const Series* other,
                                          const Series* other_baseline) {
  std::vector<double> ratios;
  const auto cost = [](const Series* one, std::size_t set) -> std::optional<double> {
    if (one == nullptr || set >= one->samples.size() || !one->samples[set]) return {};
    return figure_of(*one->samples[set], Trial::kRearm, Phase::kRearm, Figure::kCpu);
  };
  for (std::size_t set = 0; series != nullptr && set < series->samples.size(); ++set) {
    const auto a = cost(series, set), b = cost(baseline, set), c = cost(other, set), d = cost(other_baseline, set);
    if (a && b && c && d) ratios.push_back((*a / *b) / (*c / *d));
  }
  return ratios.empty() ? std::nullopt : std::optional(ratio_within(ratios));
}

class Targets {
 public:
  explicit Targets(const Results& results) : results_(results) {}

  // The private heap against the program's: glibc.
  void private_heap() {
    for (const Trial test : {Trial::kFreshRandom, Trial::kFreshAscending, Trial::kRandom, Trial::kAscending}) {
      const Row row{test, results_.settings.count, 1};
      const auto gain =
          ratio_of(find(row, Load::kAlone, kReference), find(row, Load::kAlone, kPrivate), Phase::kAll, Figure::kCpu);
      add(fmt::format("create, set and handle, {}: {} / {}", name_of(test), kReference, kPrivate), gain, 1.3, true);
    }
  }
  // Threads that hammer the program's heap, against none, and against those that leave the heap alone.
  void background() {
    for (const std::string_view name : {kPrivate, kQueue, kWheel}) {
      for (const Trial test : {Trial::kRandom, Trial::kAscending}) {
        const Row row{test, results_.settings.count, 1};
        for (const Load other : {Load::kAlone, Load::kBusy}) {
          const auto ratio = ratio_of(find(row, Load::kHeap, name), find(row, other, name), Phase::kAll, Figure::kCpu);
          add(fmt::format("{}, {}: heap threads / {}", name, name_of(test), other == Load::kAlone ? "none" : "busy threads"),
              ratio, 1.05, false);
        }
      }
    }
  }
  // The heap inside Asio is not to be had without Asio, and for one thread: the wheel for any thread is not held against it.
  void wheel(std::string_view wheel, std::initializer_list<std::string_view> peers) {
    for (const std::string_view peer : peers) {
      for (const std::uint32_t timers : results_.settings.live) {
        const Row row{Trial::kRearm, timers, 1};
        add(fmt::format("set-then-cancel, {} timers: {} / {}", timers, peer, wheel),
            ratio_of(find(row, Load::kAlone, peer), find(row, Load::kAlone, wheel), Phase::kRearm, Figure::kCpu), 3, true);
      }
    }
  }
  // O(1): as many nanoseconds for millions as for a thousand. Memory is not: one line for each timer costs the baseline.
  void growth() {
    if (results_.settings.live.size() < 2) return;
    const std::uint32_t fewest = results_.settings.live.front(), most = results_.settings.live.back();
    const auto series = [&](std::string_view name, std::uint32_t timers) {
      return find({Trial::kRearm, timers, 1}, Load::kAlone, name);
    };
    const std::string text = fmt::format("set-then-cancel, {}: {} timers / {}", kWheel, most, fewest);
    add(text, ratio_of(series(kWheel, most), series(kWheel, fewest), Phase::kRearm, Figure::kCpu), 1.3, false);
    add(text + ", both over the baseline",
        ratio_over_baselines(series(kWheel, most), series(kBaseline, most), series(kWheel, fewest),
                             series(kBaseline, fewest)),
        1.3, false);
  }

  std::vector<Target> all() && { return std::move(all_); }

 private:
  [[nodiscard]] const Series* find(const Row& row, Load load, std::string_view name) const {
    return results_.find(row, load, name);
  }
  void add(std::string text, const std::optional<Ratio>& ratio, double wanted, bool at_least) {
    if (ratio) all_.push_back({std::move(text), *ratio, wanted, at_least});
  }

  const Results& results_;
  std::vector<Target> all_;
};

}  // namespace

const Series* Results::find(const Row& row, Load load, std::size_t structure) const {
  return find(Cell{row, load, structure});
}

const Series* Results::find(const Row& row, Load load, std::string_view structure) const {
  const auto found = std::ranges::find(settings.structures, structure, &Candidate::name);
  return found == settings.structures.end() ? nullptr
                                            : find(row, load, static_cast<std::size_t>(found - settings.structures.begin()));
}

double figure_of(const Sample& sample, Trial test, Phase phase, Figure figure) {
  if (phase != Phase::kAll) {
    const Cost& cost = sample.costs[static_cast<std::size_t>(phase)];
    return value_of(cost, figure) / static_cast<double>(std::max<std::uint64_t>(cost.operations, 1));
  }
  const std::uint64_t timers = sample.costs[static_cast<std::size_t>(phases_of(test).front())].operations;
  return value_of(sum_of(sample), figure) / static_cast<double>(std::max<std::uint64_t>(timers, 1));
}

std::vector<double> figures_of(const Series& series, Phase phase, Figure figure) {
  return cli::figures_of(series,
                         [&](const Sample& sample) { return figure_of(sample, series.cell.row.test, phase, figure); });
}

std::optional<double> median_of(const Series* series, Phase phase, Figure figure) {
  if (series == nullptr) return {};
  return median_if_any(figures_of(*series, phase, figure));
}

std::optional<Ratio> ratio_of(const Series* series, const Series* other, Phase phase, Figure figure) {
  if (series == nullptr || other == nullptr) return {};
  std::vector<double> ratios = ratios_of(*series, *other, [&](const Sample& sample, const Sample& beside) {
    return figure_of(sample, series->cell.row.test, phase, figure) / figure_of(beside, other->cell.row.test, phase, figure);
  });
  std::erase_if(ratios, [](double ratio) { return !std::isfinite(ratio); });  // the other's figure is 0
  return ratios.empty() ? std::nullopt : std::optional(ratio_within(ratios));
}

std::vector<Target> targets_of(const Results& results) {
  Targets targets(results);
  targets.private_heap();
  targets.background();
  targets.wheel(kWheel, {"libuv", "asio", "asio-queue"});
  targets.wheel("wheel-any-thread", {"libuv", "asio"});
  targets.growth();
  return std::move(targets).all();
}

std::vector<std::string> failures_of(const Results& results) {
  std::vector<std::string> failures;
  for (const Series& series : results.series) {
    if (series.failure.empty()) continue;
    failures.push_back(failure_note(results.settings.structures[series.cell.structure]->name,
                                    fmt::format("{} ({})", text_of(series.cell.row), name_of(series.cell.load)),
                                    series.failure));
  }
  return failures;
}

std::vector<std::string> notes_of(const Results& results) {
  std::vector<std::string> notes = failures_of(results);
  if (!results.complete) notes.emplace(notes.begin(), kInterruptedNote);
  SpreadNote spreads(kWideSpread);
  for (const Series& series : results.series)
    spreads.add(figures_of(series, phases_of(series.cell.row.test).back(), Figure::kCpu));
  spreads.write_to(notes);
  return notes;
}

}  // namespace freehold::cli::timers
