// SPDX-License-Identifier: MIT
#include "lab/articles/experiment.hpp"

#include <algorithm>
#include <iterator>

#include "lab/articles/findings.hpp"
#include "lab/experiment/command.hpp"
#include "lab/experiment/options.hpp"
#include "lab/experiment/run.hpp"

namespace freehold::cli::articles {
namespace {

void add_failures(std::vector<std::string>& all, const auto& part) {
  if (part) std::ranges::move(failures_of(*part), std::back_inserter(all));
}

OptionTable<Choice>& options() {
  static OptionTable<Choice> table = [] {
    OptionTable<Choice> all;
    all.numbers("--articles", &Choice::articles, kFirstArticle, kLastArticle, "Numbers of the articles to test")
        .measured("", "Short run: one set, a tenth of the work", [](Choice& choice) {
          choice.repeat = 1;
          choice.quick = true;
        });
    return all;
  }();
  return table;
}

using scale::Workload;

constexpr std::uint32_t kThreads = 8;  // of articles 1 and 2

pools::Settings pools_of(const Choice& choice, const char* names, std::vector<pools::Trial> tests) {
  pools::Settings settings;
  settings.pools = parse_candidates(pools::candidates(), "--pools", names);
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

// The article's first pool is fast on a uniprocessor.
pools::Settings crc_on_one_cpu_of(const Choice& choice) {
  pools::Settings settings = crc_of(choice);
  settings.pools =
      parse_candidates(pools::candidates(), "--pools", "stacks-by-thread,stacks-by-hash,stacks-by-cpu,baseline");
  settings.crc_threads = {kThreads};
  settings.crc_pools = {1, 4};
  settings.one_cpu = true;
  return settings;
}

pools::Settings handed_of(const Choice& choice) {
  return pools_of(choice, "best,locked-bits,locked-bitmap-tree,tagged-stack,stacks-by-thread,stacks-by-cpu",
                  {pools::Trial::kRing});
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
  pools::Settings settings =
      pools_of(choice,
               "system-new,lock-free-flags,single-thread,locked-flags-unlocked,locked-bits-unlocked,"
               "locked-bitmap-tree-unlocked,boost-pool-unlocked",
               {pools::Trial::kSingle, pools::Trial::kPair, pools::Trial::kAlike, pools::Trial::kMixed});
  settings.threads = 1;
  settings.operations *= 5;
  return settings;
}

timers::Settings timers_of(const Choice& choice) {
  using timers::Trial;
  timers::Settings settings;
  settings.structures =
      parse_candidates(timers::candidates(), "--timers",
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

Results run_experiment(const Results& plan, Interrupts& interrupts, Progress& progress) {
  Results results = plan;
  record_run(results, [&] {
    bool complete = true;
    const auto measure_part = [&](auto& part) {
      if (!part) return;
      if (interrupts.arrived() != 0) return part.reset();
      part = run_experiment(part->settings, interrupts, progress);
      complete &= part->complete;
    };
    for (auto* part :
         {&results.crc, &results.crc_on_one_cpu, &results.handed, &results.several, &results.fewer, &results.alone})
      measure_part(*part);
    measure_part(results.timers);
    for (auto* part : {&results.scaling, &results.one_cpu, &results.blocks}) measure_part(*part);
    return complete && interrupts.arrived() == 0;
  });
  return results;
}

std::vector<std::string> failures_of(const Results& results) {
  std::vector<std::string> all;
  for (const auto* part :
       {&results.crc, &results.crc_on_one_cpu, &results.handed, &results.several, &results.fewer, &results.alone})
    add_failures(all, *part);
  add_failures(all, results.timers);
  for (const auto* part : {&results.scaling, &results.one_cpu, &results.blocks}) add_failures(all, *part);
  return all;
}

bool Results::has_failures() const { return !failures_of(*this).empty(); }

void add_options(Command& command) { options().add_to(command, "docs/articles.md has the claims and a stored run."); }

int run_command() {
  return cli::run_command(options().files(), plan_of(options().settings()), run_experiment, page_parts());
}

Results plan_of(const Choice& choice) {
  Results plan;
  plan.choice = choice;
  const auto has = [&](std::uint32_t article) { return std::ranges::count(choice.articles, article) > 0; };
  const auto add = [](auto& part, auto settings) { part.emplace(settings, jobs_of(settings)); };
  if (has(1)) {
    add(plan.crc, crc_of(choice));
    add(plan.crc_on_one_cpu, crc_on_one_cpu_of(choice));
  }
  if (has(1) || has(2)) add(plan.handed, handed_of(choice));
  if (has(2)) {
    add(plan.several, several_of(choice));
    add(plan.fewer, fewer_of(choice));
    add(plan.alone, alone_of(choice));
  }
  if (has(3)) add(plan.timers, timers_of(choice));
  if (has(4)) {
    scale::Settings scaling = scale_of(choice, {Workload::kCompute, Workload::kAllocate, Workload::kMixed, Workload::kMemory,
                                                Workload::kObject, Workload::kLocked});
    scaling.modes = {Mode::kThreads, Mode::kProcesses, Mode::kPool};
    scaling.workers = kArticlesWorkers;
    add(plan.scaling, scaling);
    add(plan.one_cpu, one_cpu_of(choice));
  }
  if (has(5)) {
    scale::Settings blocks = scale_of(choice, {Workload::kCompute, Workload::kIsolation, Workload::kHandover});
    blocks.modes = {Mode::kThreads};
    add(plan.blocks, blocks);
  }
  return plan;
}

}  // namespace freehold::cli::articles
