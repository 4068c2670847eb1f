// SPDX-License-Identifier: MIT
// Articles 4 and 5.
#include <fmt/format.h>

#include <algorithm>

#include "cli/articles/claims.hpp"
#include "cli/articles/sets.hpp"
#include "cli/scale/verdict.hpp"

namespace freehold::cli::articles {
namespace {
using namespace scale;

class Scaling {
 public:
  explicit Scaling(const scale::Results& results) : results_(results) {
    // As many workers as CPUs, or as near as was measured.
    for (const std::uint32_t n : results.settings.workers) {
      if (n > 1 && n <= results.machine.cpus) most_ = n;
    }
  }

  [[nodiscard]] std::uint32_t most() const { return most_; }
  [[nodiscard]] std::size_t subject(std::string_view name) const {
    const auto& all = results_.settings.subjects;
    return static_cast<std::size_t>(std::ranges::find(all, name, &Subject::name) - all.begin());
  }
  [[nodiscard]] Sets speed(Workload test, Mode mode, std::string_view name, std::uint32_t workers) const {
    const Cell cell{test, mode, subject(name), workers};
    return sets_of([&](std::size_t set) { return speed_in_set(results_, cell, set); });
  }
  // Milliseconds.
  [[nodiscard]] Sets time(Workload test, Mode mode, std::string_view name, std::uint32_t workers) const {
    const Series* const series = results_.find({test, mode, subject(name), workers});
    return sets_of([&](std::size_t set) -> std::optional<double> {
      if (series == nullptr || set >= series->samples.size() || !series->samples[set]) return {};
      return 1e-6 * static_cast<double>(series->samples[set]->elapsed_ns);
    });
  }
  // Of the same work, over all threads.
  [[nodiscard]] std::string nanoseconds(Workload test, std::string_view name, std::uint32_t workers) const {
    return figure_text(nanoseconds_per_operation(results_, results_.find({test, Mode::kThreads, subject(name), workers})));
  }

 private:
  template <class F>
  [[nodiscard]] Sets sets_of(F f) const {
    Sets sets(results_.settings.repeat);
    for (std::size_t set = 0; set < sets.size(); ++set) sets[set] = f(set);
    return sets;
  }

  const scale::Results& results_;
  std::uint32_t most_ = 2;
};

// A finding of freehold scale as an article's claim.
void take_over(const scale::Results& results, Claims& claims, std::string_view id, std::string statement,
               std::string limits) {
  const scale::Verdict verdict = verdict_of(results);
  const auto found = std::ranges::find(verdict.claims, id, &scale::Claim::id);
  articles::Claim claim;
  claim.id = id;
  claim.statement = std::move(statement);
  claim.limits = std::move(limits);
  if (found != verdict.claims.end()) {
    claim.figure = found->figures;
    claim.ratio = found->ratio;
    claim.least = found->least;
    claim.greatest = found->greatest;
    constexpr std::array kAs{articles::Verdict::kNotMeasured, articles::Verdict::kReproduced, articles::Verdict::kRefuted,
                             articles::Verdict::kUndecided};
    claim.verdict = kAs[static_cast<std::size_t>(found->outcome)];
    const bool is_below = id == "system-threads-degrade";
    claim.at_least = !is_below;
    claim.threshold = id == "freehold-threads-scale" ? kLikeProcesses : id == "pool-unlocks" ? kUnlocks : kScales;
  }
  if (results.machine.cpus == 1) claim.verdict = articles::Verdict::kNotTestable;
  claims.add(std::move(claim));
}

constexpr const char* kSystem = "system";

void controls(const Scaling& scaling, Claims& claims) {
  const std::uint32_t n = scaling.most();
  const Sets compute = scaling.speed(Workload::kCompute, Mode::kThreads, kSystem, n);
  claims.at_least({"compute-scales", "threads that compute and share nothing scale (test 1)",
                   fmt::format("{} threads are {} times as fast as one", n, figure_text(compute)),
                   "other work on the machine lowers the figure", 2},
                  compute, 0.85 * n);
  const Sets memory = scaling.speed(Workload::kMemory, Mode::kThreads, kSystem, n);
  claims.at_least({"memory-scales", "reading and writing memory scales nearly as well (test 4)",
                   fmt::format("{} times as fast, computing {}", figure_text(memory), figure_text(compute)),
                   "relative to computing; a buffer of its own for each thread", 2},
                  quotient(memory, compute), kScales);
  const Sets mixed = scaling.speed(Workload::kMixed, Mode::kThreads, kSystem, n);
  claims.at_most(
      {"mixed-between", "allocating and computing mixed gains from the second processor, but less (test 3)",
       fmt::format("{} times as fast, computing {}", figure_text(mixed), figure_text(compute)), "relative to computing", 2},
      quotient(mixed, compute), 0.9);
  const Sets more = quotient(scaling.time(Workload::kCompute, Mode::kThreads, kSystem, n),
                             scaling.time(Workload::kCompute, Mode::kThreads, kSystem, 2 * n));
  claims.at_most({"no-more-workers", "more workers than processors gain nothing",
                  fmt::format("{} threads are {} times as fast as {}", 2 * n, figure_text(more), n), "computing", 2},
                 more, 1.1);
}

void table_of_scaling(const Results& results, const Scaling& scaling, Findings& findings) {
  Table table{4, "Milliseconds of the same work by 1, 2 and 4 workers", {"work, malloc"}, {}};
  for (const char* mode : {"threads", "processes", "pool"})
    for (const std::uint32_t n : results.scaling->settings.workers) table.columns.push_back(fmt::format("{}: {}", mode, n));
  for (const Workload test : results.scaling->settings.tests) {
    for (const char* subject : {"system", "freehold"}) {
      std::vector<std::string> cells{fmt::format("{}, {}", name_of(test), subject)};
      for (const Mode mode : kModes) {
        for (const std::uint32_t n : results.scaling->settings.workers)
          cells.push_back(figure_text(scaling.time(test, mode, subject, n)));
      }
      table.rows.push_back(std::move(cells));
    }
  }
  findings.tables.push_back(std::move(table));
}

void table_of_blocks(const Results& results, const Scaling& scaling, Findings& findings) {
  Table table{5, "Nanoseconds for a block over all threads", {"allocator"}, {}};
  const auto& settings = results.blocks->settings;
  for (const Workload test : {Workload::kIsolation, Workload::kHandover})
    for (const std::uint32_t n : workers_of(settings, test))
      table.columns.push_back(fmt::format("{}: {} threads", name_of(test), n));
  for (const Subject& subject : settings.subjects) {
    std::vector<std::string> cells{subject.name};
    for (const Workload test : {Workload::kIsolation, Workload::kHandover})
      for (const std::uint32_t n : workers_of(settings, test)) cells.push_back(scaling.nanoseconds(test, subject.name, n));
    table.rows.push_back(std::move(cells));
  }
  findings.tables.push_back(std::move(table));
}

}  // namespace

void find_scaling(const Results& results, Findings& findings) {
  const Scaling scaling(*results.scaling);
  Claims claims(4, results.machine.cpus, results.scaling->others, findings.claims);
  const std::string cpus = fmt::format("{} CPUs", results.machine.cpus);
  controls(scaling, claims);
  take_over(*results.scaling, claims, "system-threads-degrade",
            "threads that allocate on the system's malloc do not scale (test 2)",
            cpus + "; relative to computing; threads have arenas of their own today");
  const std::uint32_t n = scaling.most();
  const Sets allocate = scaling.speed(Workload::kAllocate, Mode::kThreads, kSystem, n);
  claims.at_most({"slower-than-one", "they are slower than a single thread even",
                  fmt::format("{} threads are {} times as fast as one", n, figure_text(allocate)), cpus, 2},
                 allocate, 1);
  take_over(*results.scaling, claims, "processes-scale", "processes that do the same scale",
            cpus + "; relative to computing");
  take_over(*results.scaling, claims, "pool-scales", "so does a pool of worker processes that is called like a function",
            "tasks of about a millisecond; relative to computing");
  take_over(*results.scaling, claims, "pool-unlocks",
            "the pool makes a component that does not scale 1.5 to 2 times as fast as threads do",
            "the component is lists behind one lock, as the libraries' were then");
  take_over(*results.scaling, claims, "freehold-threads-scale",
            "another memory manager does without the processes, where allocating is what does not scale",
            "Freehold's malloc, relative to processes");
  claims.not_testable("hyper-threads", "four threads on two processors with two threads each reach 3 times one",
                      "the machine does not say which of its CPUs share a core");
  claims.not_testable("one-processor", "on a single processor, threads that allocate lose by cache misses",
                      fmt::format("{} CPUs, each with a cache that holds all lists", results.machine.cpus));
  table_of_scaling(results, scaling, findings);
}

void find_thread_local(const Results& results, Findings& findings) {
  const Scaling scaling(*results.blocks);
  Claims claims(5, results.machine.cpus, results.blocks->others, findings.claims);
  const std::uint32_t n = scaling.most();
  const auto isolation = [&](std::string_view name, std::uint32_t workers) {
    return scaling.time(Workload::kIsolation, Mode::kThreads, name, workers);
  };
  const auto handover = [&](std::string_view name) { return scaling.time(Workload::kHandover, Mode::kThreads, name, 2); };
  const auto text = [&](Workload test, const char* a, const char* b, std::uint32_t workers) {
    return fmt::format("{} ns a block, {} {}", scaling.nanoseconds(test, a, workers), b,
                       scaling.nanoseconds(test, b, workers));
  };
  constexpr const char* kArticle = "owner-article";
  claims.at_least({"isolation-faster", "four threads in isolation: 2 to 6 times as fast as the standard allocator (test 1)",
                   "system " + text(Workload::kIsolation, "system", kArticle, 4),
                   "the article's policy to the letter, blocks of 16 to 128 bytes"},
                  quotient(isolation("system", 4), isolation(kArticle, 4)), 2);
  claims.at_least({"handover-faster", "producer and consumer: 1.2 to 1.4 times as fast (test 2)",
                   "system " + text(Workload::kHandover, "system", kArticle, 2), "one pair of threads", 2},
                  quotient(handover("system"), handover(kArticle)), 1.15);
  claims.at_least({"hundred-times", "almost 100 times as fast on two processors",
                   "system " + text(Workload::kIsolation, "system", kArticle, 4), "the article's own table says 4 to 6", 2},
                  quotient(isolation("system", 4), isolation(kArticle, 4)), 50);
  const Sets own = scaling.speed(Workload::kIsolation, Mode::kThreads, kArticle, n);
  const Sets compute = scaling.speed(Workload::kCompute, Mode::kThreads, kSystem, n);
  claims.at_least(
      {"processors-speed-up", "in isolation, more processors make it faster only",
       fmt::format("{} threads are {} times as fast as one, computing {}", n, figure_text(own), figure_text(compute)),
       "relative to computing", 2},
      quotient(own, compute), kScales);
  const Sets standard = scaling.speed(Workload::kIsolation, Mode::kThreads, kSystem, n);
  claims.at_most({"standard-collapses", "the standard allocator becomes slower with more processors",
                  fmt::format("{} threads are {} times as fast as one", n, figure_text(standard)),
                  "glibc's threads have caches and arenas of their own today", 2},
                 standard, 1);
  claims.at_least({"batches", "a question of ours: does it pay to gather a hundred slots before they are handed over?",
                   "to the letter " + text(Workload::kHandover, kArticle, "owner-mutex", 2), "one pair of threads", 2},
                  quotient(handover(kArticle), handover("owner-mutex")), 1.05);
  claims.not_testable("absolute-times-5", "seconds on a Pentium 4 and a Xeon of 3 GHz", "processors of 2006");
  table_of_blocks(results, scaling, findings);
}

}  // namespace freehold::cli::articles
