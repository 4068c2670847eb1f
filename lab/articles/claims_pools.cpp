// SPDX-License-Identifier: MIT
// Articles 1 and 2.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "lab/articles/findings.hpp"

namespace freehold::lab::articles {
namespace {
using pools::Context;
using pools::Trial;

// The figures of a pool in a row.
class Figures {
 public:
  explicit Figures(const pools::Results& results) : results_(results) {}

  // Nanoseconds for an acquire and a release: of CPU time where only one thread can run.
  [[nodiscard]] Sets cost(std::string_view pool, const pools::Row& row, std::uint32_t shards = 0) const {
    return sets_of(pool, row, shards, false, [&](const pools::Report& s) {
      return static_cast<double>(row.threads == 1 || results_.settings.one_cpu ? s.cpu_ns : s.elapsed_ns) /
             static_cast<double>(std::max<std::uint64_t>(s.operations, 1));
    });
  }
  // How far the pool scatters its live slots: see pools::Report.
  [[nodiscard]] Sets scatter(std::string_view pool, const pools::Row& row) const {
    return sets_of(pool, row, 0, false, [](const pools::Report& s) { return s.scatter; });
  }
  // True if a time limit ended it, so that it had fewer operations.
  [[nodiscard]] bool is_shortened(std::string_view pool, const pools::Row& row) const {
    const pools::Series* const series = results_.find(row, pool);
    return series != nullptr && pools::is_shortened(*series);
  }
  [[nodiscard]] const pools::Settings& settings() const { return results_.settings; }
  [[nodiscard]] std::vector<pools::Footprint> footprints() const { return pools::footprints(results_); }
  // Conflicts for each hundred iterations.
  [[nodiscard]] Sets contention(std::string_view pool, const pools::Row& row, std::uint32_t shards) const {
    return sets_of(pool, row, shards, true, [](const pools::Report& s) {
      return 100 * static_cast<double>(s.conflicts) / static_cast<double>(std::max<std::uint64_t>(s.operations, 1));
    });
  }

 private:
  template <class F>
  [[nodiscard]] Sets sets_of(std::string_view pool, const pools::Row& row, std::uint32_t shards, bool counted, F f) const {
    return lab::sets_of(results_.find(row, pool, shards, counted), f);
  }

  const pools::Results& results_;
};

// ---- article 1

constexpr std::string_view kByThread = "stacks-by-thread", kByHash = "stacks-by-hash", kByCpu = "stacks-by-cpu";

Sets scaled(const Sets& sets, double factor) {
  return combine({sets}, [=](const auto& v) { return factor * v[0]; });
}
std::optional<double> scaled(std::optional<double> value, double factor) {
  return value ? std::optional(*value * factor) : std::nullopt;
}

class DistributedPools {
 public:
  DistributedPools(const Results& results, Findings& findings)
      : figures_(*results.crc),
        padding_(*results.padding),
        on_one_cpu_(*results.crc_on_one_cpu),
        handed_(*results.handed),
        counts_(results.crc->settings.crc_pools),
        cpus_(results.machine.cpus),
        claims_(1, results.machine.cpus, findings.claims),
        findings_(findings) {
    // As many pools as CPUs, the article's four on its four.
    enough_ = counts_.back();
    for (const std::uint32_t n : counts_) {
      if (n >= cpus_) enough_ = std::min(enough_, n);
    }
    enough_ = std::max(enough_, 2U);
  }

  void one_pool() {
    const Sets one = cost(kByThread, few_, 1), none = figures_.cost("baseline", few_);
    claims_.at_least({"one-pool-costs", "one interlocked list for all threads costs more than the work that they do with it",
                      fmt::format("{} ns a buffer with one list, {} ns without a pool", figure_text(one), figure_text(none)),
                      "8 threads; 64-byte buffers", 2},
                     quotient(one, none), 1.5);
    const Sets several = cost(kByThread, few_, enough_);
    claims_.at_least({"array-is-faster", "an array of pools is considerably faster than one (5 to 6 times on four CPUs)",
                      fmt::format("{} ns with one, {} ns with {}", figure_text(one), figure_text(several), enough_),
                      fmt::format("{} CPUs: the direction, not the factor", cpus_), 2},
                     quotient(one, several), 1.3);
    const Sets gain = quotient(one, several),
               gain_of_many = quotient(cost(kByThread, many_, 1), cost(kByThread, many_, enough_));
    claims_.at_least(
        {"more-threads-gain-more", "with 32 threads the array gains more than with 8 (10 times instead of 5 to 6)",
         fmt::format("{} pools are {} times as fast as one with 8 threads, {} times with 32", enough_, figure_text(gain),
                     figure_text(gain_of_many)),
         fmt::format("{} CPUs", cpus_), 2},
        quotient(gain_of_many, gain), 1.1);
  }

  void spreads() {
    std::vector<Sets> ratios;
    for (const std::uint32_t n : counts_) {
      if (n > 1) ratios.push_back(quotient(cost(kByThread, few_, n), cost(kByCpu, few_, n)));
    }
    claims_.at_most({"processor-not-faster", "spreading by the current processor is not faster than by thread",
                     fmt::format("with {} pools {} ns by thread, {} by processor", enough_,
                                 figure_text(cost(kByThread, few_, enough_)), figure_text(cost(kByCpu, few_, enough_))),
                     "the number of the processor is one load today; it was a call of the system", 2},
                    mean_of(ratios), 1.05);
    const Sets by_thread = figures_.contention(kByThread, few_, enough_),
               by_cpu = figures_.contention(kByCpu, few_, enough_);
    const auto smoothed = [](const Sets& sets) { return combine({sets}, [](const auto& v) { return v[0] + 0.01; }); };
    claims_.at_least({"thread-contends-more", "spread by thread, operations meet more often than by processor (by a fifth)",
                      fmt::format("{}% of the iterations by thread, {}% by processor, {} pools", figure_text(by_thread),
                                  figure_text(by_cpu), enough_),
                      "compare-exchanges that had to be repeated; 0.01 is added to both", 2},
                     quotient(smoothed(by_thread), smoothed(by_cpu)), 1.2);
  }

  // The article's own layout, and its twin without alignment and padding.
  void false_sharing() {
    const auto padded = [&](std::uint32_t n) { return padding_.cost("array-of-pools", few_, n); };
    const auto packed = [&](std::uint32_t n) { return padding_.cost("array-of-pools-packed", few_, n); };
    std::vector<Sets> ratios;
    for (const std::uint32_t n : counts_)
      if (n > 1) ratios.push_back(quotient(packed(n), padded(n)));
    claims_.at_least({"false-sharing", "false sharing is the second factor: without padding the array is slower",
                      fmt::format("with {} pools {} ns padded, {} packed", enough_, figure_text(padded(enough_)),
                                  figure_text(packed(enough_))),
                      "8 threads that pop and push by their index; the mean of all arrays", 2},
                     mean_of(ratios), 1.05);
  }

  void beyond_the_cpus() {
    for (const pools::Row& row : {few_, some_, many_}) {
      const Sets enough = cost(kByThread, row, enough_);
      std::vector<Sets> more;
      for (const std::uint32_t n : counts_)
        if (n > enough_ && n != row.threads) more.push_back(cost(kByThread, row, n));
      claims_.at_most(
          {fmt::format("no-more-than-cpus-{}", row.threads),
           fmt::format("more pools than CPUs do not help, {} threads", row.threads),
           fmt::format("{} ns with {} pools, {} with more", figure_text(enough), enough_, figure_text(mean_of(more))),
           "the mean of all larger arrays but a pool for each thread", 2},
          quotient(enough, mean_of(more)), 1.1);
    }
    const Sets shared = cost(kByThread, many_, enough_), own = cost(kByThread, many_, many_.threads);
    claims_.at_most(
        {"pool-for-each-thread", "there is no sense in a pool for each thread, 32 threads",
         fmt::format("{} ns with {} pools, {} with {}", figure_text(shared), enough_, figure_text(own), many_.threads),
         "against as many pools as CPUs", 2},
        quotient(shared, own), 1.1);
    const Sets enough = figures_.contention(kByThread, many_, enough_),
               most = figures_.contention(kByThread, many_, counts_.back());
    claims_.at_most({"contention-levels-off", "nor do more pools than CPUs lower the contention, 32 threads",
                     fmt::format("{}% of the iterations with {} pools, {}% with {}", figure_text(enough), enough_,
                                 figure_text(most), counts_.back()),
                     "0.01 is added to both", 2},
                    quotient(combine({enough}, [](const auto& v) { return v[0] + 0.01; }),
                             combine({most}, [](const auto& v) { return v[0] + 0.01; })),
                    1.25);
    claims_.not_testable("absolute-times-1", "microseconds for each operation, and the factors 5 to 6 and 10",
                         "a processor of 2007 with four cores and no shared cache; 32-bit builds");
  }

  // One head is dear only where several threads run at a time.
  void on_one_cpu() {
    const Sets one = on_one_cpu_.cost(kByThread, few_, 1), several = on_one_cpu_.cost(kByThread, few_, 4),
               none = on_one_cpu_.cost("baseline", few_), met = on_one_cpu_.contention(kByThread, few_, 1);
    const char* const kLimits = "8 threads that are kept on one CPU; CPU time";
    claims_.at_most(
        {"uniprocessor-fast", "one interlocked list is fast on a uniprocessor",
         fmt::format("{} ns a buffer with one list, {} without a pool", figure_text(one), figure_text(none)), kLimits},
        quotient(one, none), 1.5);
    claims_.at_most({"uniprocessor-array", "so that there an array of pools gains nothing",
                     fmt::format("{} ns with one, {} with 4", figure_text(one), figure_text(several)), kLimits},
                    quotient(one, several), 1.1);
    claims_.at_most({"uniprocessor-contention", "and operations hardly ever meet",
                     fmt::format("{}% of the iterations, one list", figure_text(met)),
                     "8 threads that are kept on one CPU; the ratio is in per cent"},
                    met, 1);
    claims_.at_most({"uniprocessor-processor", "nor is spreading by the current processor faster there than by thread",
                     fmt::format("{} ns by thread, {} by processor, 4 pools", figure_text(several),
                                 figure_text(on_one_cpu_.cost(kByCpu, few_, 4))),
                     kLimits},
                    quotient(several, on_one_cpu_.cost(kByCpu, few_, 4)), 1.05);
  }

  // A reader asked for it below the article.
  void producers() {
    const pools::Row ring{Trial::kRing, Context::kFresh, 8};
    const Sets one = handed_.cost("tagged-stack", ring), by_cpu = handed_.cost(kByCpu, ring);
    claims_.at_least({"producers-and-consumers", "for producers and consumers an array of pools is faster than one, too",
                      fmt::format("{} ns a slot with one list, {} by processor, {} by thread", figure_text(one),
                                  figure_text(by_cpu), figure_text(handed_.cost(kByThread, ring))),
                      "four pairs: one thread acquires, the other releases, and slots return to the pool they came from", 2},
                     quotient(one, by_cpu), 1.3);
  }

  void table() {
    const auto add = [&](const Figures& figures, const pools::Row& row, const std::string& where) {
      const auto& settings = figures.settings();
      Table table{
          1,
          fmt::format("Nanoseconds for a buffer, and contention in per cent of the iterations; {} threads{}, half of "
                      "them write; a reader takes four buffers for each of a writer",
                      row.threads, where),
          {"pools"},
          {}};
      for (const std::uint32_t n : settings.crc_pools) table.columns.push_back(std::to_string(n));
      for (const pools::Candidate* pool : settings.pools) {
        std::vector<std::string> cells{pool->name};
        for (const std::uint32_t n : pools::shards_of(settings, row, *pool))
          cells.push_back(figure_text(figures.cost(pool->name, row, n)) +
                          (n == 0 ? "" : fmt::format(", {}%", figure_text(figures.contention(pool->name, row, n)))));
        table.rows.push_back(std::move(cells));
      }
      findings_.tables.push_back(std::move(table));
    };
    for (const pools::Row& row : {few_, some_, many_}) add(figures_, row, "");
    add(padding_, few_, " that pop and push by their index");
    add(on_one_cpu_, few_, " kept on one CPU");
  }

  // The article's figures, by the number of pools. Of the values in them its text names some as ratios: those lie here as
  // far from ours.
  void plots() {
    const auto time = [&](std::string_view pool) {
      return [this, pool](const pools::Row& row, std::uint32_t n) { return scaled(cost(pool, row, n), 1e-3); };
    };
    const auto contention = [&](std::string_view pool) {
      return [this, pool](const pools::Row& row, std::uint32_t n) { return figures_.contention(pool, row, n); };
    };
    const auto marked = [&](Plot::Line line, std::optional<double> value) {
      for (std::size_t i = 0; i < counts_.size(); ++i)
        if (counts_[i] == 4) line.article[i] = value;
      return line;
    };
    const auto single = [&](auto figure) { return line("single", [&](std::uint32_t) { return figure(few_, 1); }); };
    const auto spread = [&](const char* label, auto figure) {
      return line(label, [&](std::uint32_t n) { return figure(few_, n); });
    };
    const char* const kTime = "microseconds for a buffer";
    const char* const kContention = "contention, % of the iterations";
    const Plot::Line one = single(time(kByThread));
    add_plot("Figure 5: single and distributed pools, 8 threads", kTime,
             {one, marked(spread("per thread", time(kByThread)), scaled(one.values.front(), 1 / 5.5)),
              spread("per processor", time(kByCpu))});
    const Plot::Line by_cpu = spread("per processor", contention(kByCpu));
    const std::size_t four = std::ranges::find(counts_, 4U) - counts_.begin();
    add_plot("Figure 8: contention, 8 threads", kContention,
             {single(contention(kByThread)),
              marked(spread("per thread", contention(kByThread)),
                     four < counts_.size() ? scaled(by_cpu.values[four], 1.2) : std::nullopt),
              by_cpu});
    std::vector<Plot::Line> times, conflicts;
    for (const pools::Row& row : {few_, some_, many_}) {
      const auto at = [&](auto figure) {
        return line(fmt::format("{} threads", row.threads), [&](std::uint32_t n) { return figure(row, n); });
      };
      times.push_back(at(time(kByThread)));
      if (row == many_) times.back() = marked(times.back(), scaled(times.back().values.front(), 0.1));
      conflicts.push_back(at(contention(kByThread)));
    }
    add_plot("Figure 9: time, spread by thread", kTime, std::move(times));
    add_plot("Figure 9: contention, spread by thread", kContention, std::move(conflicts));
  }

 private:
  template <class F>
  [[nodiscard]] Plot::Line line(std::string label, F figure) const {
    Plot::Line line{std::move(label), {}, {}, {}};
    for (const std::uint32_t n : counts_) line.add(figure(n));
    return line;
  }
  void add_plot(std::string title, std::string y_name, std::vector<Plot::Line> lines) {
    findings_.plots.push_back({1, std::move(title), "pool", std::move(y_name), counts_, std::move(lines)});
  }
  [[nodiscard]] Sets cost(std::string_view pool, const pools::Row& row, std::uint32_t shards) const {
    return figures_.cost(pool, row, shards);
  }

  const pools::Row few_{Trial::kCrc, Context::kFresh, 8}, some_{Trial::kCrc, Context::kFresh, 16},
      many_{Trial::kCrc, Context::kFresh, 32};
  Figures figures_, padding_, on_one_cpu_, handed_;
  std::vector<std::uint32_t> counts_;
  std::uint32_t cpus_;
  std::uint32_t enough_ = 0;
  Claims claims_;
  Findings& findings_;
};

// ---- article 2

constexpr std::string_view kS1 = "system-new", kS2 = "lock-free-flags", kS3 = "locked-flags", kS4 = "locked-bits-32",
                           kS5 = "locked-bitmap-tree-32", kS3Unlocked = "locked-flags-unlocked",
                           kS4Unlocked = "locked-bits-32-unlocked", kS5Unlocked = "locked-bitmap-tree-32-unlocked";

// The article's tables: a solution, and its seconds in tests 1, 2 and 3, fresh and polluted.
struct Solution {
  std::string_view name, pool, alone;  // alone: in test 3
  double seconds[3][2];
};
constexpr Solution kSolutions[] = {
    {"S1, default", kS1, kS1, {{8.033740, 14.308695}, {249.586365, 263.046783}, {64.339546, 67.744881}}},
    {"S2, lock-free", kS2, kS2, {{1.117134, 1.500297}, {1.158107, 1.430778}, {0.079383, 0.096421}}},
    {"S3, flags", kS3, kS3Unlocked, {{3.050532, 3.002592}, {3.155554, 3.120570}, {0.027042, 0.030818}}},
    {"S4, bits", kS4, kS4Unlocked, {{3.080593, 3.126127}, {3.376785, 3.382694}, {0.030131, 0.031371}}},
    {"S5, tree of bits", kS5, kS5Unlocked, {{4.191293, 4.081311}, {4.130811, 5.545604}, {0.070410, 0.070472}}},
    {"best", "best", "single-thread", {}},
};

class PoolsCompared {
 public:
  PoolsCompared(const Results& results, Findings& findings)
      : several_(*results.several),
        locks_(*results.locks),
        fewer_(*results.fewer),
        alone_(*results.alone),
        handed_(*results.handed),
        claims_(2, results.machine.cpus, findings.claims),
        findings_(findings) {
    for (const Trial test : {Trial::kShort, Trial::kLong}) {
      for (const Context context : {Context::kFresh, Context::kPolluted}) rows_.push_back({test, context, 8});
    }
  }

  void default_new() {
    claims_.at_least({"default-is-slowest", "the default new and delete is slower than every pool, several threads",
                      fmt::format("test 1, fresh: new {} ns, the slowest pool {}", figure_text(several_.cost(kS1, rows_[0])),
                                  figure_text(slowest(rows_[0]))),
                      "glibc keeps small blocks for each thread today", 2},
                     least_in(rows_, [&](const auto& row) { return quotient(several_.cost(kS1, row), slowest(row)); }), 1);
    claims_.at_least(
        {"default-is-slowest-alone", "and on one thread (test 3, no locks)",
         fmt::format("fresh: new {} ns, the slowest pool {}", figure_text(alone_.cost(kS1, single(Context::kFresh))),
                     figure_text(slowest_alone(Context::kFresh))),
         "contexts fresh and polluted"},
        least_of({quotient(alone_.cost(kS1, single(Context::kFresh)), slowest_alone(Context::kFresh)),
                  quotient(alone_.cost(kS1, single(Context::kPolluted)), slowest_alone(Context::kPolluted))}),
        1);
    std::vector<Sets> cost;
    for (const pools::Row& row : rows_) cost.push_back(several_.cost(kS1, row));
    claims_.at_least({"default-sinks", "blocks that live long sink the default (31 times the short ones' time, polluted 18)",
                      fmt::format("long {} ns, short {}; polluted {} and {}", figure_text(cost[2]), figure_text(cost[0]),
                                  figure_text(cost[3]), figure_text(cost[1])),
                      "the less of fresh and polluted", 2},
                     least_of({quotient(cost[2], cost[0]), quotient(cost[3], cost[1])}), 5);
    claims_.at_least({"pollution-slows-default", "half as many blocks kept before make the default slower (1.8 times)",
                      fmt::format("test 1: {} ns fresh, {} polluted", figure_text(cost[0]), figure_text(cost[1])),
                      "each thread keeps half of the blocks that it is to allocate", 2},
                     quotient(cost[1], cost[0]), 1.3);
  }

  void lock_free() {
    claims_.at_most({"s2-fastest-pool", "the pool without a lock (S2) is the fastest of the pools, several threads",
                     row_text(kS2, kS3), "S2 against the best of S3, S4, S5 in the worst of four rows", 2},
                    worst([&](const auto& row) { return quotient(several_.cost(kS2, row), best_locked(row)); }), 1);
    claims_.at_most({"s2-fastest-of-all", "S2 outperforms every other solution, the default included", row_text(kS2, kS1),
                     "the worst of four rows", 2},
                    worst([&](const auto& row) { return quotient(several_.cost(kS2, row), several_.cost(kS1, row)); }), 1);
    std::vector<Sets> polluted;
    for (const std::size_t fresh : {std::size_t{0}, std::size_t{2}})
      polluted.push_back(quotient(several_.cost(kS2, rows_[fresh + 1]), several_.cost(kS2, rows_[fresh])));
    claims_.at_least({"pollution-slows-s2", "every second slot in use makes S2 slower (1.2 to 1.3 times)",
                      fmt::format("test 1: {} ns fresh, {} polluted", figure_text(several_.cost(kS2, rows_[0])),
                                  figure_text(several_.cost(kS2, rows_[1]))),
                      "tests 1 and 2", 2},
                     mean_of(polluted), 1.1);
  }

  void locked() {
    claims_.at_most({"s3-before-s4", "flags (S3) are usually faster than bits (S4), several threads", row_text(kS3, kS4),
                     "the mean of four rows; a lock decides both", 2},
                    mean([&](const auto& row) { return quotient(several_.cost(kS3, row), several_.cost(kS4, row)); }), 1);
    claims_.at_least({"s5-slowest", "the tree of bitfields (S5) is the slowest pool, several threads", row_text(kS5, kS4),
                      "against the slowest of S2, S3, S4; the mean of four rows", 2},
                     mean([&](const auto& row) {
                       return quotient(
                           several_.cost(kS5, row),
                           greatest_of({several_.cost(kS2, row), several_.cost(kS3, row), several_.cost(kS4, row)}));
                     }),
                     1);
    const std::vector<Sets> locks{locks_.cost(kS3, rows_[0]), locks_.cost("locked-flags-spin", rows_[0]),
                                  locks_.cost("locked-flags-ticket", rows_[0])};
    claims_.at_least({"locks-differ", "the lock should be chosen by the context (the post before): S3 under three of them",
                      fmt::format("test 1 fresh: mutex {} ns, spin {}, ticket {}", figure_text(locks[0]),
                                  figure_text(locks[1]), figure_text(locks[2])),
                      "the slowest against the fastest by their medians", 2},
                     quotient(std::ranges::max(locks, {}, median_of), std::ranges::min(locks, {}, median_of)), 1.2);
    std::vector<Sets> fewer;
    for (const std::string_view pool : {kS2, kS3, kS4, kS5}) {
      const Sets ratio = quotient(fewer_.cost(pool, rows_[2]), several_.cost(pool, rows_[2]));
      fewer.push_back(combine({ratio}, [](const auto& v) { return std::max(v[0], 1 / v[0]); }));
    }
    claims_.at_most({"stable-counts", "the time of an allocation is about the same whatever their number",
                     fmt::format("S2 {} ns with a quarter of them, {} with all", figure_text(fewer_.cost(kS2, rows_[2])),
                                 figure_text(several_.cost(kS2, rows_[2]))),
                     "test 2, fresh; the mean over the pools of how far they differ", 2},
                    mean_of(fewer), 1.5);
  }

  // A search that goes round scatters the slots; one from the start does not, but costs a queue time.
  void order_of_slots() {
    const auto scatter = [&](Trial test) {
      std::vector<Sets> all;
      for (const std::string_view pool : {kS2, kS3Unlocked, kS4Unlocked, kS5Unlocked})
        all.push_back(alone_.scatter(pool, alone_row(test)));
      return all;
    };
    const std::vector<Sets> mixed = scatter(Trial::kMixed), alike = scatter(Trial::kAlike);
    const auto text = [](const std::vector<Sets>& pages) {
      return fmt::format("S2 {}, S3 {}, S4 {}, S5 {}", figure_text(pages[0]), figure_text(pages[1]), figure_text(pages[2]),
                         figure_text(pages[3]));
    };
    const char* const kLimits = "pages that live slots lie in, for each that they would fill; one thread";
    claims_.at_least({"tree-fragments-least", "the tree (S5) fragments a pool the least",
                      "slots that live for different times: " + text(mixed), kLimits},
                     quotient(least_of({mixed[0], mixed[1], mixed[2]}), mixed[3]), 1.5);
    claims_.at_least({"lives-fragment", "S2 to S4 fragment it, unless all slots live for the same time",
                      fmt::format("the same time: {}; different times: {}", text(alike), text(mixed)), kLimits},
                     least_of({quotient(mixed[0], alike[0]), quotient(mixed[1], alike[1]), quotient(mixed[2], alike[2])}),
                     1.5);
    const auto queue = [&](std::string id, std::string statement, const Sets& s4, const Sets& s5, std::string limits) {
      claims_.at_most({std::move(id), std::move(statement),
                       fmt::format("S4 {} ns a slot, S5 {}", figure_text(s4), figure_text(s5)), std::move(limits)},
                      quotient(s4, s5), 1);
    };
    const pools::Row ring{Trial::kRing, Context::kFresh, 8};
    queue("s4-before-s5-in-queue", "as a balanced queue of producers and consumers S4 is ahead of S5",
          handed_.cost(kS4, ring), handed_.cost(kS5, ring), "four pairs of threads; a lock decides both");
    queue("s4-before-s5-in-queue-alone", "and without their locks", alone_.cost(kS4Unlocked, alone_row(Trial::kAlike)),
          alone_.cost(kS5Unlocked, alone_row(Trial::kAlike)), "one thread that replaces the oldest slot");
  }

  void bit_manipulation() {
    const std::vector<Sets> bits{alone_.cost(kS4Unlocked, alone_row(Trial::kPair)),
                                 alone_.cost(kS5Unlocked, alone_row(Trial::kPair))},
        whole{several_.cost(kS4, rows_[0]), several_.cost(kS5, rows_[0])};
    claims_.at_least({"bits-bottleneck", "the manipulation of bits can be the bottleneck of S4 and S5",
                      fmt::format("S4 {} ns without its lock, {} in test 1; S5 {} and {}", figure_text(bits[0]),
                                  figure_text(whole[0]), figure_text(bits[1]), figure_text(whole[1])),
                      "the share of all but the lock, the mean of both; by the article's own tables it is a tenth", 2},
                     mean_of({quotient(bits[0], whole[0]), quotient(bits[1], whole[1])}), 0.5);
  }

  void one_thread() {
    const auto mean_alone = [&](std::string_view a, std::string_view b) {
      std::vector<Sets> ratios;
      for (const Context context : {Context::kFresh, Context::kPolluted})
        ratios.push_back(quotient(alone_.cost(a, single(context)), alone_.cost(b, single(context))));
      return mean_of(ratios);
    };
    const auto text = [&](std::string_view a, std::string_view b) {
      return fmt::format("fresh {} and {} ns, polluted {} and {}", figure_text(alone_.cost(a, single(Context::kFresh))),
                         figure_text(alone_.cost(b, single(Context::kFresh))),
                         figure_text(alone_.cost(a, single(Context::kPolluted))),
                         figure_text(alone_.cost(b, single(Context::kPolluted))));
    };
    claims_.at_least({"atomics-cost-alone", "on one thread S2's atomics make it slower than S3 without its lock (2.9 times)",
                      "S2 and S3: " + text(kS2, kS3Unlocked), "test 3"},
                     mean_alone(kS2, kS3Unlocked), 1.1);
    claims_.at_most({"s3-before-s4-alone", "without locks S3 is faster than S4 on one thread",
                     "S3 and S4: " + text(kS3Unlocked, kS4Unlocked), "test 3"},
                    mean_alone(kS3Unlocked, kS4Unlocked), 1);
    claims_.at_most({"s5-before-s2-alone", "on one thread the tree without its lock (S5) is faster than S2",
                     "S5 and S2: " + text(kS5Unlocked, kS2), "test 3"},
                    mean_alone(kS5Unlocked, kS2), 1);
    const auto tree_in = [&](Context context) {
      return quotient(alone_.cost(kS5Unlocked, single(context)),
                      least_of({alone_.cost(kS3Unlocked, single(context)), alone_.cost(kS4Unlocked, single(context))}));
    };
    const Sets fresh = tree_in(Context::kFresh), half = tree_in(Context::kHalfUsed);
    claims_.at_least(
        {"half-favours-tree", "a search that begins at a used first half would favour the tree (S5)",
         fmt::format("S5 takes {} times as long as the best of S3 and S4 in a fresh pool, {} times with the first "
                     "half in use",
                     figure_text(fresh), figure_text(half)),
         "test 3, one search through the used half"},
        quotient(fresh, half), 1.05);
    std::vector<Sets> contexts;
    for (const Context context : pools::kContexts) contexts.push_back(alone_.cost(kS5Unlocked, single(context)));
    claims_.at_most(
        {"s5-constant", "S5 takes the same time in every state of the pool",
         fmt::format("{} ns at least, {} at most", figure_text(least_of(contexts)), figure_text(greatest_of(contexts))),
         "test 3: fresh, every second in use, the first half, all but one in a hundred"},
        quotient(greatest_of(contexts), least_of(contexts)), 1.5);
  }

  void wish() {
    claims_.at_most({"wish-thread-local", "a wish: a pool that uses thread-local storage (best) is faster than S2",
                     row_text("best", kS2), "the worst of four rows", 2},
                    worst([&](const auto& row) { return quotient(several_.cost("best", row), several_.cost(kS2, row)); }),
                    1);
    claims_.at_most({"wish-several", "the wish: one pool ahead of all others in every context, several threads (best)",
                     row_text("best", kS1), "best against the best of S1 to S5 in the worst of four rows", 2},
                    worst([&](const auto& row) {
                      return quotient(several_.cost("best", row),
                                      least_of({best_locked(row), several_.cost(kS1, row), several_.cost(kS2, row)}));
                    }),
                    1.05);
    std::vector<Sets> alone;
    for (const Context context : pools::kContexts) {
      std::vector<Sets> others;
      for (const std::string_view pool :
           {kS1, kS2, kS3Unlocked, kS4Unlocked, kS5Unlocked, std::string_view("boost-pool-unlocked")})
        others.push_back(alone_.cost(pool, single(context)));
      alone.push_back(quotient(alone_.cost("single-thread", single(context)), least_of(others)));
    }
    claims_.at_most({"wish-alone", "the wish on one thread (single-thread)",
                     fmt::format("fresh {} ns, S3 without its lock {}",
                                 figure_text(alone_.cost("single-thread", single(Context::kFresh))),
                                 figure_text(alone_.cost(kS3Unlocked, single(Context::kFresh)))),
                     "against the best of S1 to S5 and Boost.Pool, the worst of four contexts"},
                    greatest_of(alone), 1.05);
    claims_.not_testable("absolute-times-2", "seconds for eight million allocations",
                         "a processor with eight cores, the heap of 2009 and its system");
  }

  void tables() {
    add_test(0, "Test 1: short life, 8 threads");
    add_test(1, "Test 2: long life, 8 threads");
    add_test(2, "Test 3: long life, one thread, no locks but S2's atomics");
    Table memory{2,
                 "Bytes of bookkeeping for a slot, at most; pages that live slots lie in, for each that they would fill",
                 {"pool", "bytes", "the same time", "different times"},
                 {}};
    for (const pools::Footprint& one : alone_.footprints())
      memory.rows.push_back({one.pool, figure_text(one.bookkeeping_bytes), figure_text(one.alike), figure_text(one.mixed)});
    findings_.tables.push_back(std::move(memory));
    Table alone{2,
                "Test 3: one thread, no locks but S2's atomics",
                {"pool", "fresh", "polluted", "first half in use", "99% in use"},
                {}};
    for (const std::string_view pool : {kS1, kS2, kS3Unlocked, kS4Unlocked, kS5Unlocked,
                                        std::string_view("boost-pool-unlocked"), std::string_view("single-thread")}) {
      std::vector<std::string> cells{std::string(pool)};
      for (const Context context : pools::kContexts) cells.push_back(figure_text(alone_.cost(pool, single(context))));
      alone.rows.push_back(std::move(cells));
    }
    findings_.tables.push_back(std::move(alone));
  }

 private:
  // One of the article's three tables and its chart, sorted as there.
  void add_test(std::size_t test, std::string title) {
    const Figures& figures = test == 2 ? alone_ : several_;
    const double tasks = static_cast<double>(figures.settings().operations * figures.settings().threads),
                 tasks_of_article = test == 2 ? 1e6 : 8e6;
    std::multimap<double, std::pair<Bars::Bar, std::vector<std::string>>> sorted;  // by the total
    for (const Solution& solution : kSolutions) {
      for (const bool polluted : {false, true}) {
        const pools::Row row =
            test == 2 ? single(polluted ? Context::kPolluted : Context::kFresh) : rows_[2 * test + (polluted ? 1 : 0)];
        const std::string_view pool = test == 2 ? solution.alone : solution.pool;
        const Sets ns = figures.cost(pool, row);
        const auto total = range_of(scaled(ns, 1e-9 * tasks));
        if (!total) continue;
        const double theirs = solution.seconds[test][polluted];
        const std::string label = fmt::format("({}) {}", polluted ? 'P' : 'F', solution.name);
        std::vector<std::string> cells{label, std::string(pool),
                                       fmt::format("{}{:.6f}", figures.is_shortened(pool, row) ? "~" : "", total->median),
                                       figure_text(ns)};
        for (const double figure : {theirs, 1e9 * theirs / tasks_of_article})
          cells.push_back(theirs > 0 ? fmt::format("{:.6g}", figure) : "");
        sorted.emplace(total->median, std::pair{Bars::Bar{label, std::string(solution.name), total,
                                                          theirs > 0 ? std::optional(theirs) : std::nullopt, pool == kS1},
                                                std::move(cells)});
      }
    }
    Table table{2,
                fmt::format("{}; {:.0f} allocations (F: fresh, P: polluted; ~: calculated from fewer)", title, tasks),
                {"solution", "pool", "total, s", "a task, ns", "the article's total, s", "a task, ns"},
                {}};
    Bars bars{2, std::move(title), "s", "s", {}};
    for (auto& [total, entry] : sorted) {
      bars.bars.push_back(std::move(entry.first));
      table.rows.push_back(std::move(entry.second));
    }
    findings_.tables.push_back(std::move(table));
    findings_.bars.push_back(std::move(bars));
  }
  [[nodiscard]] static pools::Row alone_row(Trial test) { return {test, Context::kFresh, 1}; }
  [[nodiscard]] static pools::Row single(Context context) { return {Trial::kSingle, context, 1}; }
  [[nodiscard]] Sets best_locked(const pools::Row& row) const {
    return least_of({several_.cost(kS3, row), several_.cost(kS4, row), several_.cost(kS5, row)});
  }
  [[nodiscard]] Sets slowest(const pools::Row& row) const {
    return greatest_of({several_.cost(kS2, row), several_.cost(kS3, row), several_.cost(kS4, row), several_.cost(kS5, row)});
  }
  [[nodiscard]] Sets slowest_alone(Context context) const {
    std::vector<Sets> all;
    for (const std::string_view pool : {kS2, kS3Unlocked, kS4Unlocked, kS5Unlocked})
      all.push_back(alone_.cost(pool, single(context)));
    return greatest_of(all);
  }
  [[nodiscard]] std::string row_text(std::string_view a, std::string_view b) const {
    return fmt::format("test 1 fresh {} and {} ns, test 2 fresh {} and {}", figure_text(several_.cost(a, rows_[0])),
                       figure_text(several_.cost(b, rows_[0])), figure_text(several_.cost(a, rows_[2])),
                       figure_text(several_.cost(b, rows_[2])));
  }
  template <class F>
  [[nodiscard]] static std::vector<Sets> each(const std::vector<pools::Row>& rows, F f) {
    std::vector<Sets> all;
    for (const pools::Row& row : rows) all.push_back(f(row));
    return all;
  }
  template <class F>
  [[nodiscard]] static Sets least_in(const std::vector<pools::Row>& rows, F f) {
    return least_of(each(rows, f));
  }
  template <class F>
  [[nodiscard]] Sets worst(F f) const {
    return greatest_of(each(rows_, f));
  }
  template <class F>
  [[nodiscard]] Sets mean(F f) const {
    return mean_of(each(rows_, f));
  }

  Figures several_, locks_, fewer_, alone_, handed_;
  std::vector<pools::Row> rows_;  // tests 1 and 2, each fresh and polluted
  Claims claims_;
  Findings& findings_;
};

}  // namespace

void find_distributed_pools(const Results& results, Findings& findings) {
  DistributedPools found(results, findings);
  found.one_pool();
  found.spreads();
  found.false_sharing();
  found.beyond_the_cpus();
  found.on_one_cpu();
  found.producers();
  found.table();
  found.plots();
}

void find_pools_compared(const Results& results, Findings& findings) {
  PoolsCompared found(results, findings);
  found.default_new();
  found.lock_free();
  found.locked();
  found.order_of_slots();
  found.bit_manipulation();
  found.one_thread();
  found.wish();
  found.tables();
}

}  // namespace freehold::lab::articles
