// SPDX-License-Identifier: MIT
// Articles 1 and 2.
#include <fmt/format.h>

#include <algorithm>

#include "lab/articles/findings.hpp"

namespace freehold::cli::articles {
namespace {
using pools::Context;
using pools::Trial;

// The figures of a pool in a row.
class Figures {
 public:
  explicit Figures(const pools::Results& results) : results_(results) {}

  // Nanoseconds for an acquire and a release: of CPU time for one thread, which never waits.
  [[nodiscard]] Sets cost(std::string_view pool, const pools::Row& row, std::uint32_t shards = 0) const {
    return sets_of(pool, row, shards, false, [&](const pools::Report& s) {
      return static_cast<double>(row.threads == 1 ? s.cpu_ns : s.elapsed_ns) /
             static_cast<double>(std::max<std::uint64_t>(s.operations, 1));
    });
  }
  // Conflicts for each hundred iterations.
  [[nodiscard]] Sets contention(std::string_view pool, const pools::Row& row, std::uint32_t shards) const {
    return sets_of(pool, row, shards, true, [](const pools::Report& s) {
      return 100 * static_cast<double>(s.conflicts) / static_cast<double>(std::max<std::uint64_t>(s.operations, 1));
    });
  }

 private:
  template <class F>
  [[nodiscard]] Sets sets_of(std::string_view pool, const pools::Row& row, std::uint32_t shards, bool counted, F f) const {
    return cli::sets_of(results_.find(row, pool, shards, counted), f);
  }

  const pools::Results& results_;
};

// ---- article 1

constexpr std::string_view kByThread = "stacks-by-thread", kByHash = "stacks-by-hash", kByCpu = "stacks-by-cpu";

class DistributedPools {
 public:
  DistributedPools(const Results& results, Findings& findings)
      : figures_(*results.crc),
        counts_(results.crc->settings.crc_pools),
        cpus_(results.machine.cpus),
        claims_(1, results.machine.cpus, results.crc->others, findings.claims),
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
                      fmt::format("{} of a hundred operations by thread, {} by processor, {} pools", figure_text(by_thread),
                                  figure_text(by_cpu), enough_),
                      "compare-exchanges that had to be repeated; 0.01 is added to both", 2},
                     quotient(smoothed(by_thread), smoothed(by_cpu)), 1.2);
  }

  void beyond_the_cpus() {
    for (const pools::Row& row : {few_, some_, many_}) {
      const Sets enough = cost(kByThread, row, enough_), most = cost(kByThread, row, counts_.back());
      claims_.at_most(
          {fmt::format("no-more-than-cpus-{}", row.threads),
           fmt::format("more pools than CPUs do not help, {} threads", row.threads),
           fmt::format("{} ns with {} pools, {} with {}", figure_text(enough), enough_, figure_text(most), counts_.back()),
           "a thread that loses its CPU inside an operation is not counted apart", 2},
          quotient(enough, most), 1.1);
    }
    const Sets enough = figures_.contention(kByThread, many_, enough_),
               most = figures_.contention(kByThread, many_, counts_.back());
    claims_.at_most({"contention-levels-off", "nor do more pools than CPUs lower the contention, 32 threads",
                     fmt::format("{} of a hundred operations with {} pools, {} with {}", figure_text(enough), enough_,
                                 figure_text(most), counts_.back()),
                     "0.01 is added to both", 2},
                    quotient(combine({enough}, [](const auto& v) { return v[0] + 0.01; }),
                             combine({most}, [](const auto& v) { return v[0] + 0.01; })),
                    1.25);
    claims_.not_testable("absolute-times-1", "microseconds for each operation, and the factors 5 to 6 and 10",
                         "a processor of 2007 with four cores and no shared cache; 32-bit builds");
  }

  void table() {
    for (const pools::Row& row : {few_, some_, many_}) {
      Table table{
          1,
          fmt::format("Nanoseconds for a buffer, and conflicts in a hundred operations; {} threads, half of them write; "
                      "a reader takes four buffers for each of a writer",
                      row.threads),
          {"pools"},
          {}};
      for (const std::uint32_t n : counts_) table.columns.push_back(std::to_string(n));
      for (const std::string_view pool : {kByThread, kByHash, kByCpu}) {
        std::vector<std::string> cells{std::string(pool)};
        for (const std::uint32_t n : counts_)
          cells.push_back(
              fmt::format("{}, {}%", figure_text(cost(pool, row, n)), figure_text(figures_.contention(pool, row, n))));
        table.rows.push_back(std::move(cells));
      }
      for (const char* name : {"best", "baseline"}) table.rows.push_back({name, figure_text(figures_.cost(name, row))});
      findings_.tables.push_back(std::move(table));
    }
  }

  // The article's figure 9: by thread, a line for each number of threads.
  void plots() {
    plot("Figure 9: time, spread by thread", "nanoseconds for a buffer",
         [&](const pools::Row& row, std::uint32_t n) { return cost(kByThread, row, n); });
    plot("Figure 9: contention, spread by thread", "conflicts in a hundred operations",
         [&](const pools::Row& row, std::uint32_t n) { return figures_.contention(kByThread, row, n); });
  }

 private:
  template <class F>
  void plot(std::string title, std::string y_name, F figure) {
    Plot plot{1, std::move(title), "pool", std::move(y_name), counts_, {}};
    for (const pools::Row& row : {few_, some_, many_}) {
      Plot::Line line{fmt::format("{} threads", row.threads), {}, {}, {}};
      for (const std::uint32_t n : counts_) {
        const Sets sets = figure(row, n);
        const auto range = range_of(sets);
        line.values.push_back(median_of(sets));
        line.least.push_back(range ? std::optional(range->least) : std::nullopt);
        line.greatest.push_back(range ? std::optional(range->greatest) : std::nullopt);
      }
      plot.lines.push_back(std::move(line));
    }
    findings_.plots.push_back(std::move(plot));
  }
  [[nodiscard]] Sets cost(std::string_view pool, const pools::Row& row, std::uint32_t shards) const {
    return figures_.cost(pool, row, shards);
  }

  const pools::Row few_{Trial::kCrc, Context::kFresh, 8}, some_{Trial::kCrc, Context::kFresh, 16},
      many_{Trial::kCrc, Context::kFresh, 32};
  Figures figures_;
  std::vector<std::uint32_t> counts_;
  std::uint32_t cpus_;
  std::uint32_t enough_ = 0;
  Claims claims_;
  Findings& findings_;
};

// ---- article 2

constexpr std::string_view kS1 = "system-new", kS2 = "lock-free-flags", kS3 = "locked-flags", kS4 = "locked-bits",
                           kS5 = "locked-bitmap-tree", kS3Unlocked = "locked-flags-unlocked",
                           kS4Unlocked = "locked-bits-unlocked", kS5Unlocked = "locked-bitmap-tree-unlocked";

class PoolsCompared {
 public:
  PoolsCompared(const Results& results, Findings& findings)
      : several_(*results.several),
        fewer_(*results.fewer),
        alone_(*results.alone),
        claims_(2, results.machine.cpus, std::max(results.several->others, results.fewer->others), findings.claims),
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
         "contexts fresh and polluted", 1, true},
        least_of({quotient(alone_.cost(kS1, single(Context::kFresh)), slowest_alone(Context::kFresh)),
                  quotient(alone_.cost(kS1, single(Context::kPolluted)), slowest_alone(Context::kPolluted))}),
        1);
    claims_.at_least({"default-sinks", "blocks that live long sink the default (31 times the short ones' time)",
                      fmt::format("long {} ns, short {}", figure_text(several_.cost(kS1, rows_[2])),
                                  figure_text(several_.cost(kS1, rows_[0]))),
                      "fresh", 2},
                     quotient(several_.cost(kS1, rows_[2]), several_.cost(kS1, rows_[0])), 5);
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
                      "S2 and S3: " + text(kS2, kS3Unlocked), "test 3", 1, true},
                     mean_alone(kS2, kS3Unlocked), 1.1);
    claims_.at_most({"s3-before-s4-alone", "without locks S3 is faster than S4 on one thread",
                     "S3 and S4: " + text(kS3Unlocked, kS4Unlocked), "test 3", 1, true},
                    mean_alone(kS3Unlocked, kS4Unlocked), 1);
    claims_.at_most({"s5-before-s2-alone", "on one thread the tree without its lock (S5) is faster than S2",
                     "S5 and S2: " + text(kS5Unlocked, kS2), "test 3", 1, true},
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
         "test 3, one search through the used half", 1, true},
        quotient(fresh, half), 1.05);
    std::vector<Sets> contexts;
    for (const Context context : pools::kContexts) contexts.push_back(alone_.cost(kS5Unlocked, single(context)));
    claims_.at_most(
        {"s5-constant", "S5 takes the same time in every state of the pool",
         fmt::format("{} ns at least, {} at most", figure_text(least_of(contexts)), figure_text(greatest_of(contexts))),
         "test 3: fresh, every second in use, the first half, all but one in a hundred", 1, true},
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
                     "against the best of S1 to S5 and Boost.Pool, the worst of four contexts", 1, true},
                    greatest_of(alone), 1.05);
    claims_.not_testable("absolute-times-2", "seconds for eight million allocations",
                         "a processor with eight cores, the heap of 2009 and its system");
  }

  void tables() {
    Table table{2,
                "Nanoseconds for an acquire and a release, 8 threads (F: fresh, P: every second slot in use)",
                {"pool", "test 1 F", "test 1 P", "test 2 F", "test 2 P"},
                {}};
    for (const std::string_view pool : {kS1, kS2, kS3, kS4, kS5, std::string_view("best")}) {
      std::vector<std::string> cells{std::string(pool)};
      for (const pools::Row& row : rows_) cells.push_back(figure_text(several_.cost(pool, row)));
      table.rows.push_back(std::move(cells));
    }
    findings_.tables.push_back(std::move(table));
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

  Figures several_, fewer_, alone_;
  std::vector<pools::Row> rows_;  // tests 1 and 2, each fresh and polluted
  Claims claims_;
  Findings& findings_;
};

}  // namespace

void find_distributed_pools(const Results& results, Findings& findings) {
  DistributedPools found(results, findings);
  found.one_pool();
  found.spreads();
  found.beyond_the_cpus();
  found.table();
  found.plots();
}

void find_pools_compared(const Results& results, Findings& findings) {
  PoolsCompared found(results, findings);
  found.default_new();
  found.lock_free();
  found.locked();
  found.one_thread();
  found.wish();
  found.tables();
}

}  // namespace freehold::cli::articles
