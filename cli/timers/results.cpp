#include "cli/timers/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "cli/support/statistics.hpp"

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

// (series / its floor) / (other / its floor), in the sets that have all four.
std::optional<Ratio> ratio_over_floors(const Series* series, const Series* floor, const Series* other,
                                       const Series* other_floor) {
  std::vector<double> ratios;
  const auto cost = [](const Series* one, std::size_t set) -> std::optional<double> {
    if (one == nullptr || set >= one->samples.size() || !one->samples[set]) return {};
    return figure_of(*one->samples[set], Trial::kRearm, Phase::kRearm, Figure::kCpu);
  };
  for (std::size_t set = 0; series != nullptr && set < series->samples.size(); ++set) {
    const auto a = cost(series, set), b = cost(floor, set), c = cost(other, set), d = cost(other_floor, set);
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
          ratio_of(find(row, Load::kAlone, kBase), find(row, Load::kAlone, kPrivate), Phase::kAll, Figure::kCpu);
      add(fmt::format("create, set and handle, {}: {} / {}", name_of(test), kBase, kPrivate), gain, 1.3, true);
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
  // O(1): as many nanoseconds for millions as for a thousand. Memory is not: one line for each timer costs the floor.
  void growth() {
    if (results_.settings.live.size() < 2) return;
    const std::uint32_t fewest = results_.settings.live.front(), most = results_.settings.live.back();
    const auto series = [&](std::string_view name, std::uint32_t timers) {
      return find({Trial::kRearm, timers, 1}, Load::kAlone, name);
    };
    const std::string text = fmt::format("set-then-cancel, {}: {} timers / {}", kWheel, most, fewest);
    add(text, ratio_of(series(kWheel, most), series(kWheel, fewest), Phase::kRearm, Figure::kCpu), 1.3, false);
    add(text + ", both over the floor",
        ratio_over_floors(series(kWheel, most), series(kFloor, most), series(kWheel, fewest), series(kFloor, fewest)), 1.3,
        false);
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
  const auto found = std::ranges::find(series, Cell{row, load, structure}, &Series::cell);
  return found == series.end() ? nullptr : &*found;
}

const Series* Results::find(const Row& row, Load load, std::string_view structure) const {
  const auto found = std::ranges::find(settings.structures, structure, &Contender::name);
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
  std::vector<double> figures;
  for (const auto& sample : series.samples) {
    if (sample) figures.push_back(figure_of(*sample, series.cell.row.test, phase, figure));
  }
  return figures;
}

std::optional<double> median_of(const Series* series, Phase phase, Figure figure) {
  if (series == nullptr) return {};
  const std::vector<double> figures = figures_of(*series, phase, figure);
  return figures.empty() ? std::nullopt : std::optional(median(figures));
}

std::optional<Ratio> ratio_of(const Series* series, const Series* other, Phase phase, Figure figure) {
  if (series == nullptr || other == nullptr) return {};
  std::vector<double> ratios;
  for (std::size_t set = 0; set < std::min(series->samples.size(), other->samples.size()); ++set) {
    const auto &sample = series->samples[set], &beside = other->samples[set];
    if (!sample || !beside) continue;
    const double denominator = figure_of(*beside, other->cell.row.test, phase, figure);
    if (denominator > 0) ratios.push_back(figure_of(*sample, series->cell.row.test, phase, figure) / denominator);
  }
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

std::vector<std::string> notes_of(const Results& results) {
  std::vector<std::string> notes;
  if (!results.complete) notes.emplace_back("Interrupted: what was finished is shown.");
  std::size_t measured = 0, wide = 0;
  double widest = 0;
  for (const Series& series : results.series) {
    const std::string& name = results.settings.structures[series.cell.structure]->name;
    if (!series.failure.empty()) {
      notes.push_back(fmt::format("{} failed in {} ({}): {}.", name, text_of(series.cell.row), name_of(series.cell.load),
                                  series.failure));
    }
    const std::vector<double> figures = figures_of(series, phases_of(series.cell.row.test).back(), Figure::kCpu);
    measured += figures.empty() ? 0 : 1;
    wide += spread(figures) > kWideSpread ? 1 : 0;
    widest = std::max(widest, spread(figures));
  }
  if (wide > 0) {
    notes.push_back(fmt::format("{} of {} medians come from sets that differ by more than {:.0f}% (the worst by {:.0f}%).",
                                wide, measured, 100 * kWideSpread, 100 * widest));
  }
  return notes;
}

}  // namespace freehold::cli::timers
