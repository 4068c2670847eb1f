// SPDX-License-Identifier: MIT
#include "lab/articles/plan.hpp"

#include <algorithm>

namespace freehold::cli::articles {
namespace {
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
