// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "lab/timers/experiment.hpp"

namespace freehold::lab::timers {
namespace {

constexpr double kWideSpread = 0.25;

Cost sum_of(const Report& report) {
  Cost sum;
  for (const Cost& cost : report.costs) sum += cost;
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

double figure_of(const Report& report, Trial test, Phase phase, Figure figure) {
  if (phase != Phase::kAll) {
    const Cost& cost = report.costs[static_cast<std::size_t>(phase)];
    return value_of(cost, figure) / static_cast<double>(std::max<std::uint64_t>(cost.operations, 1));
  }
  const std::uint64_t timers = report.costs[static_cast<std::size_t>(phases_of(test).front())].operations;
  return value_of(sum_of(report), figure) / static_cast<double>(std::max<std::uint64_t>(timers, 1));
}

class Targets {
 public:
  explicit Targets(const Results& results) : results_(results) {}

  // The private heap against the program's: glibc.
  void private_heap() {
    for (const Trial test : {Trial::kFreshRandom, Trial::kFreshAscending, Trial::kRandom, Trial::kAscending}) {
      const Row row{test, results_.settings.count, 1};
      const auto gain =
          ratios_of(find(row, Load::kAlone, kArticlesQueue), find(row, Load::kAlone, kArticlesPrivate), Phase::kAll);
      add(fmt::format("create, set and handle, {}: {} / {}", name_of(test), kArticlesQueue, kArticlesPrivate), gain, 1.3,
          true);
    }
  }
  // Threads that hammer the program's heap, against none, and against those that leave the heap alone.
  void background() {
    for (const std::string_view name : {kArticlesPrivate, kQueue, kWheel}) {
      for (const Trial test : {Trial::kRandom, Trial::kAscending}) {
        const Row row{test, results_.settings.count, 1};
        for (const Load other : {Load::kAlone, Load::kBusy}) {
          const auto ratio = ratios_of(find(row, Load::kHeap, name), find(row, other, name), Phase::kAll);
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
            ratios_of(find(row, Load::kAlone, peer), find(row, Load::kAlone, wheel), Phase::kRearm), 3, true);
      }
    }
  }
  // O(1): as many nanoseconds for millions as for a thousand. Memory is not: one line for each timer costs the baseline.
  void growth() {
    if (results_.settings.live.size() < 2) return;
    const std::uint32_t fewest = results_.settings.live.front(), most = results_.settings.live.back();
    const auto growth = [&](std::string_view name) {
      return ratios_of(find({Trial::kRearm, most, 1}, Load::kAlone, name),
                       find({Trial::kRearm, fewest, 1}, Load::kAlone, name), Phase::kRearm);
    };
    const std::string text = fmt::format("set-then-cancel, {}: {} timers / {}", kWheel, most, fewest);
    add(text, growth(kWheel), 1.3, false);
    add(text + ", both over the baseline", quotient(growth(kWheel), growth(kBaseline)), 1.3, false);
  }

  std::vector<Claim> all() && { return std::move(all_); }

 private:
  [[nodiscard]] const Series* find(const Row& row, Load load, std::string_view name) const {
    return results_.find(row, load, name);
  }
  void add(std::string text, const Sets& ratios, double wanted, bool at_least) {
    Claim target{.id = {}, .statement = std::move(text)};
    target.judge(ratios, wanted, at_least);
    all_.push_back(std::move(target));
  }

  const Results& results_;
  std::vector<Claim> all_;
};

std::vector<Claim> all_targets(const Results& results) {
  Targets targets(results);
  targets.private_heap();
  targets.background();
  targets.wheel(kWheel, {"libuv", "asio", "asio-queue"});
  targets.wheel("wheel-any-thread", {"libuv", "asio"});
  targets.growth();
  return std::move(targets).all();
}

}  // namespace

const Series* Results::find(const Row& row, Load load, std::string_view structure) const {
  return find_if([&](const Job& job) { return job.row() == row && job.load == load && job.structure->name == structure; });
}

Sets figures_of(const Series* series, Phase phase, Figure figure) {
  return sets_of(series, [&](const Report& report) { return figure_of(report, series->job.test, phase, figure); });
}

Sets ratios_of(const Series* series, const Series* other, Phase phase) {
  return quotient(figures_of(series, phase, Figure::kCpu), figures_of(other, phase, Figure::kCpu));
}

std::vector<Claim> targets_of(const Results& results) {
  std::vector<Claim> targets = judge_undisturbed(results, all_targets);
  std::erase_if(targets, [](const Claim& target) { return !target.ratio; });
  return targets;
}

std::vector<Moved> moved_of(const Results& results) {
  std::vector<Moved> all;
  for (const auto& [before, after] :
       {std::pair{kArticlesQueue, kArticlesPrivate}, {kArticlesWheel, kArticlesPrivateWheel}}) {
    for (const Trial test : {Trial::kFreshRandom, Trial::kFreshAscending}) {
      const Row row{test, results.settings.count, 1};
      for (const Phase phase : phases_of(test)) {
        const auto milliseconds = [&](std::string_view name) {
          const Sets ns = figures_of(results.find(row, Load::kAlone, name), phase, Figure::kCpu);
          return range_of(combine({ns}, [](const auto& v) { return v[0] * kArticlesTimers / 1e6; }));
        };
        if (const auto from = milliseconds(before), to = milliseconds(after); from && to)
          all.push_back({before, after, test, phase, *from, *to});
      }
    }
  }
  return all;
}

std::vector<std::string> notes_of(const Results& results) {
  std::vector<std::string> notes = first_notes(results);
  std::vector<Sets> medians;
  for (const Series& series : results.series)
    medians.push_back(figures_of(&series, phases_of(series.job.test).back(), Figure::kCpu));
  note_spread(kWideSpread, medians, notes);
  return notes;
}

}  // namespace freehold::lab::timers
