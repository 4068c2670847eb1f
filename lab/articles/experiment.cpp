// SPDX-License-Identifier: MIT
#include "lab/articles/experiment.hpp"

#include <algorithm>
#include <iterator>

#include "lab/experiment/run.hpp"
#include "lab/pools/experiment.hpp"
#include "lab/scale/experiment.hpp"
#include "lab/scale/verdict.hpp"
#include "lab/timers/experiment.hpp"

namespace freehold::cli::articles {
namespace {

class Experiment {
 public:
  Experiment(Interrupts& interrupts, Progress& progress) : interrupts_(interrupts), progress_(progress) {}

  template <class Part, class Settings, class Run>
  void part(std::optional<Part>& result, const std::optional<Settings>& settings, Run run) {
    if (!settings || interrupts_.arrived() != 0) return;
    result = run(*settings);
    complete_ &= result->complete;
  }
  void pools(std::optional<pools::Results>& result, const std::optional<pools::Settings>& settings) {
    part(result, settings, [&](const auto& s) { return pools::run_experiment(s, interrupts_, progress_); });
  }
  void timers(std::optional<timers::Results>& result, const std::optional<timers::Settings>& settings) {
    part(result, settings, [&](const auto& s) { return timers::run_experiment(s, interrupts_, progress_); });
  }
  void scale(std::optional<scale::Results>& result, const std::optional<scale::Settings>& settings) {
    part(result, settings, [&](const auto& s) { return scale::run_experiment(s, interrupts_, progress_); });
  }
  [[nodiscard]] bool is_complete() const { return complete_ && interrupts_.arrived() == 0; }

 private:
  Interrupts& interrupts_;
  Progress& progress_;
  bool complete_ = true;
};

void add_failures(std::vector<std::string>& all, const auto& part) {
  if (part) std::ranges::move(failures_of(*part), std::back_inserter(all));
}

using scale::Workload;

constexpr std::uint32_t kThreads = 8;  // of articles 1 and 2

pools::Settings pools_of(const Choice& choice, const char* names, std::vector<pools::Trial> tests) {
  pools::Settings settings;
  settings.pools = pools::parse_pools(names);
  settings.tests = std::move(tests);
  settings.threads = kThreads;
  settings.repeat = choice.repeat;
  settings.operations = choice.quick ? 20'000 : 200'000;
  settings.milliseconds = choice.quick ? 40 : 400;
  return settings;
}

pools::Settings crc_of(const Choice& choice) {
  pools::Settings settings =
      pools_of(choice, "best,stacks-by-thread,stacks-by-hash,stacks-by-cpu,baseline", {pools::Trial::kCrc});
  settings.operations = choice.quick ? 2'000 : 30'000;  // of a writer; four times as many of a reader
  settings.crc_threads = {kThreads, 16, 32};
  return settings;
}

pools::Settings several_of(const Choice& choice) {
  pools::Settings settings = pools_of(choice, "best,system-new,lock-free-flags,locked-flags,locked-bits,locked-bitmap-tree",
                                      {pools::Trial::kShort, pools::Trial::kLong});
  settings.contexts = {pools::Context::kFresh, pools::Context::kPolluted};
  return settings;
}

pools::Settings fewer_of(const Choice& choice) {
  pools::Settings settings =
      pools_of(choice, "lock-free-flags,locked-flags,locked-bits,locked-bitmap-tree", {pools::Trial::kLong});
  settings.contexts = {pools::Context::kFresh};
  settings.operations /= 4;
  return settings;
}

// As the article's: S2 has its atomics, the others have no lock.
pools::Settings alone_of(const Choice& choice) {
  pools::Settings settings = pools_of(choice,
                                      "system-new,lock-free-flags,single-thread,locked-flags-unlocked,locked-bits-unlocked,"
                                      "locked-bitmap-tree-unlocked,boost-pool-unlocked",
                                      {pools::Trial::kSingle});
  settings.threads = 1;
  settings.operations *= 5;
  return settings;
}

timers::Settings timers_of(const Choice& choice) {
  using timers::Trial;
  timers::Settings settings;
  settings.structures = timers::parse_structures(
      "article,article-1-arena,article-containers,article-containers-1-arena,article-private,"
      "article-wheel,article-wheel-containers,article-wheel-private,queue,wheel");
  settings.tests = {Trial::kFreshRandom, Trial::kFreshAscending, Trial::kRandom, Trial::kCancel, Trial::kShared};
  settings.loads = {timers::Load::kAlone, timers::Load::kHeap};
  settings.repeat = choice.repeat;
  settings.background = 1;  // a CPU for it and one for the timers: more would take cache and CPU time as well
  settings.milliseconds = choice.quick ? 5 : 60;
  if (choice.quick) settings.count = settings.cancelled = settings.shared = 10'000;
  return settings;
}

scale::Settings scale_of(const Choice& choice, std::vector<Workload> tests) {
  scale::Settings settings;
  settings.subjects = scale::subjects_of({find_allocator("system"), find_allocator("freehold")});
  settings.tests = std::move(tests);
  settings.workers = {1, 2, 4};
  settings.repeat = choice.repeat;
  settings.milliseconds = choice.quick ? 10 : 60;
  return settings;
}

// The workers of article 4, but its three.
const std::vector<std::uint32_t> kArticlesWorkers{1, 2, 4, 6};

scale::Settings one_cpu_of(const Choice& choice) {
  scale::Settings settings = scale_of(choice, {Workload::kCompute, Workload::kAllocate, Workload::kMemory});
  settings.subjects = scale::subjects_of({find_allocator("system")});
  settings.workers = kArticlesWorkers;
  settings.one_cpu = true;
  return settings;
}

}  // namespace

Results run_experiment(const Plan& plan, Interrupts& interrupts, Progress& progress) {
  Results results;
  results.plan = plan;
  record_run(results, [&] {
    Experiment experiment(interrupts, progress);
    experiment.pools(results.crc, plan.crc);
    experiment.pools(results.several, plan.several);
    experiment.pools(results.fewer, plan.fewer);
    experiment.pools(results.alone, plan.alone);
    experiment.timers(results.timers, plan.timers);
    experiment.scale(results.scaling, plan.scaling);
    experiment.scale(results.one_cpu, plan.one_cpu);
    experiment.scale(results.blocks, plan.blocks);
    return experiment.is_complete();
  });
  return results;
}

std::vector<std::string> failures_of(const Results& results) {
  std::vector<std::string> all;
  for (const auto* part : {&results.crc, &results.several, &results.fewer, &results.alone}) add_failures(all, *part);
  add_failures(all, results.timers);
  for (const auto* part : {&results.scaling, &results.one_cpu, &results.blocks}) add_failures(all, *part);
  return all;
}

bool Plan::has(std::uint32_t article) const { return std::ranges::count(choice.articles, article) > 0; }

Plan plan_of(const Choice& choice) {
  Plan plan{.choice = choice,
            .crc = {},
            .several = {},
            .fewer = {},
            .alone = {},
            .timers = {},
            .scaling = {},
            .one_cpu = {},
            .blocks = {}};
  if (plan.has(1)) plan.crc = crc_of(choice);
  if (plan.has(2)) {
    plan.several = several_of(choice);
    plan.fewer = fewer_of(choice);
    plan.alone = alone_of(choice);
  }
  if (plan.has(3)) plan.timers = timers_of(choice);
  if (plan.has(4)) {
    plan.scaling = scale_of(choice, {Workload::kCompute, Workload::kAllocate, Workload::kMixed, Workload::kMemory,
                                     Workload::kObject, Workload::kLocked});
    plan.scaling->modes = {Mode::kThreads, Mode::kProcesses, Mode::kPool};
    plan.scaling->workers = kArticlesWorkers;
    plan.one_cpu = one_cpu_of(choice);
  }
  if (plan.has(5)) {
    plan.blocks = scale_of(choice, {Workload::kCompute, Workload::kIsolation, Workload::kHandover});
    plan.blocks->modes = {Mode::kThreads};
  }
  return plan;
}

}  // namespace freehold::cli::articles
