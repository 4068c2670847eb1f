// SPDX-License-Identifier: MIT
// Article 3.
#include <fmt/format.h>

#include <algorithm>

#include "lab/articles/findings.hpp"
#include "lab/experiment/command.hpp"

namespace freehold::lab::articles {
namespace {
using namespace timers;

class Timers {
 public:
  // CPU time and counts, which other programs hardly change.
  Timers(const Results& results, Findings& findings)
      : results_(*results.timers), claims_(3, results.machine.cpus, findings.claims), findings_(findings) {}

  // The article's first step, before the timers' data and the pairs followed.
  void containers() {
    claims_.at_least({"containers-faster", "with the containers alone on a private heap the queue is faster than with new",
                      all_text(kArticlesQueue, kArticlesContainers), kFresh},
                     gain_of(kArticlesQueue, kArticlesContainers, Phase::kAll), 1);
    claims_.at_least({"containers-still-contend", "but what is left on the program's heap contends with all who use that",
                      fmt::format("{} sleeps", figure_text(sleeps("article-containers-1-arena"))),
                      kBeside + "; malloc with one lock, as the article's had", 2},
                     sleeps("article-containers-1-arena"), 1);
    claims_.at_least({"rest-gains", "moving the rest to the private heap as well makes it faster again",
                      all_text(kArticlesContainers, kArticlesPrivate), kFresh},
                     gain_of(kArticlesContainers, kArticlesPrivate, Phase::kAll), 1);
    claims_.at_least({"containers-of-wheel", "the wheel, too, gains by its one container, the set of handles",
                      all_text(kArticlesWheel, kArticlesContainersWheel), kFresh},
                     gain_of(kArticlesWheel, kArticlesContainersWheel, Phase::kAll), 1);
  }

  void private_heap() {
    const std::string limits = kFresh;
    gain("create", "creating 100,000 timers on a private heap takes 40 ms instead of 60 (1.5 times as fast)", Phase::kCreate,
         1.25, limits);
    gain("set", "setting them takes 100 ms instead of 130 (1.3 times)", Phase::kSet, 1.15, limits);
    gain("handle", "handling them is a little faster, too", Phase::kHandle, 1, limits);
    std::vector<Sets> phases;
    for (const Phase phase : {Phase::kCreate, Phase::kSet, Phase::kCancel})
      phases.push_back(quotient(cost(kArticlesQueue, cancel_, phase), cost(kArticlesPrivate, cancel_, phase)));
    claims_.at_least({"every-operation", "every operation is faster, cancelling included",
                      fmt::format("cancel {} ns on the program's heap, {} on a private one",
                                  figure_text(cost(kArticlesQueue, cancel_, Phase::kCancel)),
                                  figure_text(cost(kArticlesPrivate, cancel_, Phase::kCancel))),
                      "create, set and cancel in a heap that is worn: the least of the three"},
                     least_of(phases), 1);
    claims_.at_least(
        {"untouched-containers",
         "a question of ours: with the containers untouched, is a private heap by scope faster than new, too?",
         all_text(kArticlesQueue, kArticlesScopes), "create and set in a scope, under Freehold's malloc; " + kFresh},
        gain_of(kArticlesQueue, kArticlesScopes, Phase::kAll), 1.05);
    claims_.at_least({"slower-private-heap", "on the private heap that was there already the queue is slower than with new",
                      all_text(kArticlesQueue, kArticlesPool),
                      "std::pmr::unsynchronized_pool_resource; the article's was HeapAlloc's; " + kFresh},
                     gain_of(kArticlesPool, kArticlesQueue, Phase::kAll), 1);
    constexpr const char* kMspace = "on an mspace, the heap that the article chose, it is faster";
    if (find_by_name(candidates(), kArticlesMspace) == nullptr)
      claims_.not_testable("mspace-gains", kMspace, "this build has no source of dlmalloc: script/bench mspace");
    else
      claims_.at_least({"mspace-gains", kMspace, all_text(kArticlesQueue, kArticlesMspace), kFresh},
                       gain_of(kArticlesQueue, kArticlesMspace, Phase::kAll), 1.05);
  }

  void wheel() {
    const Sets wheel = gain_of(kArticlesWheel, kArticlesPrivateWheel, Phase::kAll);
    claims_.at_least({"wheel-gains", "the wheel gains from a private heap as well",
                      fmt::format("create, set and handle {} ns on the program's heap, {} on a private one",
                                  figure_text(cost(kArticlesWheel, random_, Phase::kAll)),
                                  figure_text(cost(kArticlesPrivateWheel, random_, Phase::kAll))),
                      "the article's wheel: a ring, a set of handles, timer data apart"},
                     wheel, 1.05);
    const auto saved = [&](std::string_view shared, std::string_view own) {
      return combine({cost(shared, random_, Phase::kAll), cost(own, random_, Phase::kAll)},
                     [](const auto& v) { return std::max(v[0] - v[1], 1.0); });
    };
    const Sets by_queue = saved(kArticlesQueue, kArticlesPrivate), by_wheel = saved(kArticlesWheel, kArticlesPrivateWheel);
    claims_.at_least(
        {"wheel-gains-less", "but less than the queue, since it allocates less",
         fmt::format("{} ns less for a timer of the queue, {} of the wheel", figure_text(by_queue), figure_text(by_wheel)),
         "random times, fresh process"},
        quotient(by_queue, by_wheel), 1);
    claims_.at_least({"intrusive", "containers whose nodes are in the timers would do better still",
                      fmt::format("{} ns with containers on a private heap, {} with TimerQueue",
                                  figure_text(cost(kArticlesPrivate, random_, Phase::kAll)),
                                  figure_text(cost(kQueue, random_, Phase::kAll))),
                      "create, set and handle; the article had none yet"},
                     gain_of(kArticlesPrivate, kQueue, Phase::kAll), 1.1);
  }

  void contention() {
    const std::string& limits = kBeside;
    const auto text = [&](std::string_view name) { return fmt::format("{} sleeps", figure_text(sleeps(name))); };
    claims_.at_least({"heap-contends", "on the program's heap the queue waits for all who use that heap",
                      text("article-1-arena"), limits + "; malloc with one lock, as the article's had", 2},
                     sleeps("article-1-arena"), 1);
    claims_.at_least({"heap-contends-today", "the same with malloc as it is today", text(kArticlesQueue),
                      limits + "; glibc gives each thread an arena", 2},
                     sleeps(kArticlesQueue), 1);
    claims_.at_most(
        {"private-does-not", "on a private heap it waits only for its own users", text(kArticlesPrivate), limits, 2},
        sleeps(kArticlesPrivate), 1);
    const Sets one = rearm(1), four = rearm(4);
    claims_.at_least(
        {"users-contend", "users who share the queue contend with each other still",
         fmt::format("{} ns of CPU for set and cancel with one user, {} with four", figure_text(one), figure_text(four)),
         fmt::format("{} CPUs", results_.machine.cpus), 2},
        quotient(four, one), 1.1);
    claims_.not_testable("absolute-times-3", "milliseconds", "a machine of 2008");
  }

  // The article's figure.
  void milliseconds() {
    Table table{3, "Milliseconds of CPU for 100,000 timers, fresh process", {"structure, times"}, {}};
    for (const char* column : {"create: new", "private", "set: new", "private", "handle: new", "private"})
      table.columns.emplace_back(column);
    const std::vector<Moved> all = moved_of(results_);
    for (auto moved = all.begin(); moved != all.end(); moved += 4) {  // create, set, handle, all
      std::vector<std::string> cells{
          fmt::format("{}, {}", moved->before, moved->test == Trial::kFreshRandom ? "random" : "ascending")};
      for (auto phase = moved; phase != moved + 3; ++phase)
        cells.insert(cells.end(), {figure_text(phase->before_ms.median), figure_text(phase->after_ms.median)});
      table.rows.push_back(std::move(cells));
    }
    table.rows.push_back({"the article's queue in 2008", "60", "40", "130", "100", "–", "a little less"});
    findings_.tables.push_back(std::move(table));
  }

  void table() {
    Table table{3, "Nanoseconds of CPU for a timer, fresh process, random times", {"structure"}, {}};
    for (const Phase phase : phases_of(random_.test)) table.columns.emplace_back(name_of(phase));
    table.columns.insert(table.columns.end(),
                         {"ascending, all", "worn, random, all", "beside a thread that allocates", "sleeps"});
    for (const Candidate* const structure : results_.settings.structures) {
      std::vector<std::string> cells{structure->name};
      for (const Phase phase : phases_of(random_.test)) cells.push_back(figure_text(cost(structure->name, random_, phase)));
      cells.push_back(figure_text(cost(structure->name, ascending_, Phase::kAll)));
      cells.push_back(figure_text(cost(structure->name, worn_, Phase::kAll)));
      for (const Figure figure : {Figure::kCpu, Figure::kSleeps})
        cells.push_back(figure_text(figures_of(results_.find(worn_, Load::kHeap, structure->name), Phase::kAll, figure)));
      table.rows.push_back(std::move(cells));
    }
    findings_.tables.push_back(std::move(table));
  }

  // The article's figures, its queue's and its wheel's. Its text gives four values, without an order of times.
  void bars() {
    for (const Moved& moved : moved_of(results_)) {
      if (moved.phase == Phase::kAll) continue;
      const bool is_queue = moved.before == kArticlesQueue;
      if (moved.phase == Phase::kCreate)
        findings_.bars.push_back({3,
                                  fmt::format("100,000 timers: the {}, {} times", is_queue ? "queue" : "wheel",
                                              moved.test == Trial::kFreshRandom ? "random" : "ascending"),
                                  "ms",
                                  "ms",
                                  {}});
      const auto given = [&](double create, double set) {
        return !is_queue || moved.phase == Phase::kHandle ? std::nullopt
                                                          : std::optional(moved.phase == Phase::kCreate ? create : set);
      };
      const std::string phase(name_of(moved.phase));
      auto& bars = findings_.bars.back().bars;
      bars.push_back({phase + ", before", "new and the program's heap", moved.before_ms, given(60, 130)});
      bars.push_back({phase + ", after", "private heap", moved.after_ms, given(40, 100)});
    }
  }

 private:
  [[nodiscard]] Sets cost(std::string_view name, const Row& row, Phase phase) const {
    return figures_of(results_.find(row, Load::kAlone, name), phase, Figure::kCpu);
  }
  [[nodiscard]] Sets sleeps(std::string_view name) const {
    return figures_of(results_.find(worn_, Load::kHeap, name), Phase::kAll, Figure::kSleeps);
  }
  [[nodiscard]] std::string all_text(std::string_view from, std::string_view to) const {
    return fmt::format("create, set and handle: random {} ns instead of {}, ascending {} instead of {}",
                       figure_text(cost(to, random_, Phase::kAll)), figure_text(cost(from, random_, Phase::kAll)),
                       figure_text(cost(to, ascending_, Phase::kAll)), figure_text(cost(from, ascending_, Phase::kAll)));
  }
  [[nodiscard]] Sets rearm(std::uint32_t users) const {
    return cost(kArticlesPrivate, {Trial::kShared, results_.settings.shared, users}, Phase::kRearm);
  }
  [[nodiscard]] Sets gain_of(std::string_view from, std::string_view to, Phase phase) const {
    return mean_of({quotient(cost(from, random_, phase), cost(to, random_, phase)),
                    quotient(cost(from, ascending_, phase), cost(to, ascending_, phase))});
  }
  void gain(std::string id, std::string statement, Phase phase, double threshold, const std::string& limits) {
    claims_.at_least(
        {std::move(id), std::move(statement),
         fmt::format("random {} ns instead of {}, ascending {} instead of {}",
                     figure_text(cost(kArticlesPrivate, random_, phase)), figure_text(cost(kArticlesQueue, random_, phase)),
                     figure_text(cost(kArticlesPrivate, ascending_, phase)),
                     figure_text(cost(kArticlesQueue, ascending_, phase))),
         limits},
        gain_of(kArticlesQueue, kArticlesPrivate, phase), threshold);
  }

  const timers::Results& results_;
  const std::string kFresh = fmt::format("{} timers in a fresh process, random and ascending times: the mean of both",
                                         results_.settings.count),
                    kBeside = "one thread that allocates beside the one that uses the timers; sleeps in a thousand timers";
  const Row random_{Trial::kFreshRandom, results_.settings.count, 1},
      ascending_{Trial::kFreshAscending, results_.settings.count, 1}, worn_{Trial::kRandom, results_.settings.count, 1},
      cancel_{Trial::kCancel, results_.settings.cancelled, 1};
  Claims claims_;
  Findings& findings_;
};

}  // namespace

void find_timers(const articles::Results& results, Findings& findings) {
  Timers found(results, findings);
  found.containers();
  found.private_heap();
  found.wheel();
  found.contention();
  found.milliseconds();
  found.table();
  found.bars();
}

}  // namespace freehold::lab::articles
