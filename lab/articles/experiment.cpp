// SPDX-License-Identifier: MIT
#include "lab/articles/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "lab/articles/findings.hpp"
#include "lab/experiment/command.hpp"
#include "lab/experiment/options.hpp"
#include "lab/experiment/run.hpp"

namespace freehold::lab::articles {
namespace {

OptionTable<Choice>& options() {
  static OptionTable<Choice> table = [] {
    OptionTable<Choice> all;
    all.numbers("--articles", &Choice::articles, kFirstArticle, kLastArticle, "Numbers of the articles to test")
        .row("--full", "Long run: the articles' own counts and sets, which takes hours", "",
             [](Choice& choice, const std::string&, const std::string&) {
               choice.full = true;
               choice.repeat = 0;
               choice.store = "freehold-articles.sets";
             })
        .row("--store", "Keep each finished measurement in this file, and go on from it [--full: freehold-articles.sets]",
             "FILE", [](Choice& choice, const std::string&, const std::string& text) { choice.store = text; })
        .measured("", "Short run: one set, a tenth of the work; each article's heading says what was measured",
                  [](Choice& choice) {
                    choice.repeat = 1;
                    choice.quick = true;
                  });
    return all;
  }();
  return table;
}

using scale::Workload;

constexpr std::uint32_t kThreads = 8;          // threads in articles 1 and 2
constexpr std::uint32_t kIteration_ms = 5000;  // article 4: "about 4-6 seconds", by one worker

std::uint32_t sets_of(const Choice& choice, std::uint32_t sets_of_the_article) {
  return choice.repeat == 0 ? sets_of_the_article : choice.repeat;
}
template <class T>
T by_extent(const Choice& choice, T quick, T usual, T full) {
  return choice.full ? full : choice.quick ? quick : usual;
}

pools::Settings pools_of(const Choice& choice, const char* names, std::vector<pools::Trial> tests) {
  pools::Settings settings;
  settings.pools = parse_candidates(pools::candidates(), "--pools", names);
  settings.tests = std::move(tests);
  settings.threads = kThreads;
  settings.repeat = sets_of(choice, 5);
  settings.operations = by_extent(choice, 20'000, 200'000, 1'000'000);
  settings.milliseconds = choice.quick ? 40 : 400;
  settings.whole = choice.full;
  return settings;
}

pools::Settings crc_of(const Choice& choice) {
  pools::Settings settings =
      pools_of(choice, "best,stacks-by-thread,stacks-by-hash,stacks-by-cpu,baseline", {pools::Trial::kCrc});
  settings.repeat = sets_of(choice, 50);
  settings.operations = by_extent(choice, 2'000, 30'000, 1'000'000);  // a writer's; a reader has four times as many
  settings.crc_threads = {kThreads, 16, 32};
  return settings;
}

// The article's own array, and the same without padding.
pools::Settings padding_of(const Choice& choice) {
  pools::Settings settings = crc_of(choice);
  settings.pools = parse_candidates(pools::candidates(), "--pools", "array-of-pools,array-of-pools-packed");
  settings.crc_threads = {kThreads};
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
  return pools_of(choice, "best,locked-bits-32,locked-bitmap-tree-32,tagged-stack,stacks-by-thread,stacks-by-cpu",
                  {pools::Trial::kRing});
}

pools::Settings several_of(const Choice& choice) {
  pools::Settings settings =
      pools_of(choice, "best,system-new,lock-free-flags,locked-flags,locked-bits-32,locked-bitmap-tree-32",
               {pools::Trial::kShort, pools::Trial::kLong});
  settings.contexts = {pools::Context::kFresh, pools::Context::kPolluted};
  return settings;
}

// With a time limit always: a ticket lock takes a time slice for a pair when its next thread has no CPU.
pools::Settings locks_of(const Choice& choice) {
  pools::Settings settings = pools_of(choice, "locked-flags,locked-flags-spin,locked-flags-ticket", {pools::Trial::kShort});
  settings.contexts = {pools::Context::kFresh};
  settings.whole = false;
  return settings;
}

pools::Settings fewer_of(const Choice& choice) {
  pools::Settings settings =
      pools_of(choice, "lock-free-flags,locked-flags,locked-bits-32,locked-bitmap-tree-32", {pools::Trial::kLong});
  settings.contexts = {pools::Context::kFresh};
  settings.operations /= 4;
  return settings;
}

// As the article's: S2 has its atomics, the others have no lock.
pools::Settings alone_of(const Choice& choice) {
  pools::Settings settings =
      pools_of(choice,
               "system-new,lock-free-flags,single-thread,locked-flags-unlocked,locked-bits-32-unlocked,"
               "locked-bitmap-tree-32-unlocked,boost-pool-unlocked",
               {pools::Trial::kSingle, pools::Trial::kPair, pools::Trial::kAlike, pools::Trial::kMixed});
  settings.threads = 1;
  if (!choice.full) settings.operations *= 5;
  return settings;
}

timers::Settings timers_of(const Choice& choice) {
  using timers::Trial;
  timers::Settings settings;
  std::string names =
      "article,article-1-arena,article-containers,article-containers-1-arena,article-private,article-scopes,"
      "article-pool-resource,"
      "article-wheel,article-wheel-containers,article-wheel-private,queue,wheel";
  if (find_by_name(timers::candidates(), timers::kArticlesMspace) != nullptr) names += ",article-mspace";
  settings.structures = parse_candidates(timers::candidates(), "--timers", names);
  settings.tests = {Trial::kFreshRandom, Trial::kFreshAscending, Trial::kRandom, Trial::kCancel, Trial::kShared};
  settings.loads = {timers::Load::kAlone, timers::Load::kHeap};
  settings.repeat = sets_of(choice, 5);
  settings.freehold_library = choice.library;
  settings.background = 1;  // a CPU for it and one for the timers: more would take cache and CPU time as well
  settings.milliseconds = choice.quick ? 5 : 60;
  if (choice.quick) settings.count = settings.cancelled = settings.shared = 10'000;
  return settings;
}

const std::vector<std::uint32_t> kArticlesWorkers{1, 2, 3, 4, 6};

scale::Settings scale_of(const Choice& choice, std::vector<Workload> tests) {
  scale::Settings settings;
  settings.subjects = scale::subjects_of({find_allocator("system"), {"freehold", choice.library}});
  settings.tests = std::move(tests);
  settings.workers = kArticlesWorkers;
  settings.repeat = sets_of(choice, 3);
  settings.milliseconds = by_extent(choice, 10U, 60U, kIteration_ms * settings.iterations);
  return settings;
}

scale::Settings one_cpu_of(const Choice& choice) {
  scale::Settings settings =
      scale_of(choice, {Workload::kCompute, Workload::kAllocate, Workload::kMixed, Workload::kMemory, Workload::kOwnMemory});
  settings.subjects = scale::subjects_of({find_allocator("system")});
  settings.one_cpu = true;
  return settings;
}

// The article's service had hundreds of documents in a second; the article's table was for eight tasks.
scale::Settings pooled_of(const Choice& choice) {
  scale::Settings settings = scale_of(choice, {Workload::kAllocate});
  settings.subjects = scale::subjects_of({find_allocator("system")});
  settings.modes = {Mode::kProcesses, Mode::kPool, Mode::kSpawn};
  settings.workers = {1, 2, 4, 8};
  settings.iterations = by_extent(choice, 8U, 48U, 480U);
  settings.milliseconds = 3 * settings.iterations;
  return settings;
}

}  // namespace

Results run_experiment(const Results& plan, Interrupts& interrupts, Progress& progress) {
  Results results = plan;
  std::optional<SampleStore> store;
  if (!plan.choice.store.empty()) store.emplace(plan.choice.store);
  progress.expect(extent_of(plan).measurements);
  record_run(results, [&] {
    bool complete = true;
    for_each_part(results, [&](auto& part) {
      if (interrupts.arrived() != 0) return part.reset();
      part->settings.store = store ? &*store : nullptr;
      part = run_experiment(part->settings, interrupts, progress);
      part->settings.store = nullptr;
      complete &= part->complete;
    });
    return complete && interrupts.arrived() == 0;
  });
  return results;
}

std::vector<std::string> failures_of(const Results& results) {
  std::vector<std::string> all;
  for_each_part(results, [&](const auto& part) { std::ranges::move(lab::failures_of(*part), std::back_inserter(all)); });
  return all;
}

bool Results::has_failures() const { return !failures_of(*this).empty(); }

void add_options(Command& command) { options().add_to(command, "docs/articles.md has the claims and a stored run."); }

int run_command() {
  Choice choice = options().settings();
  if (std::ranges::max(choice.articles) > 2) choice.library = find_freehold_library();
  if (choice.quick && choice.full) throw Failure(kExitRefused, "--full: it cannot be --quick, too");
  const Results plan = plan_of(choice);
  if (const auto [seconds, measurements] = extent_of(plan); choice.full) {
    std::fputs(fmt::format("{} measurements, about {} on a quiet machine. {} keeps what is finished: after Ctrl-C the same "
                           "command goes on.\n",
                           measurements, duration_text(seconds), printable(choice.store))
                   .c_str(),
               stderr);
  }
  return lab::run_command(options().files(), plan, run_experiment, page_parts());
}

namespace {

double seconds_of(const pools::Job& job) {
  constexpr double kPair_s = 100e-9;  // time of a pair in the slower pools
  const double whole = kPair_s * static_cast<double>(job.wished_operations());
  return 0.1 + (job.milliseconds == 0 ? whole : std::min(1e-3 * job.milliseconds, whole));
}
double seconds_of(const timers::Job& job) { return 0.1 + 1e-3 * job.milliseconds * job.users; }
double seconds_of(const scale::Job& job) {
  const bool in_turns = job.one_cpu || job.test == Workload::kLocked;
  return 0.1 + 1e-3 * job.milliseconds / (in_turns ? 1 : std::min(job.workers, this_machine().cpus));
}

std::string cut_of(const pools::Results& part) {
  const auto cut = std::ranges::count_if(part.series, pools::is_shortened);
  if (cut == 0) return {};
  return fmt::format(" ({} of {} figures come from fewer: a test ends after {} ms)", cut, part.series.size(),
                     part.settings.milliseconds);
}

}  // namespace

Extent extent_of(const Results& plan) {
  Extent extent;
  for_each_part(plan, [&](const auto& part) {
    for (const auto& series : part->series) extent.seconds += part->settings.repeat * seconds_of(series.job);
    extent.measurements += part->settings.repeat * part->series.size();
  });
  return extent;
}

std::string counts_of(const Results& results, std::uint32_t article) {
  const auto sets = [](const auto& part) {
    return part.settings.repeat == 1 ? "one set" : fmt::format("medians of {} sets", part.settings.repeat);
  };
  const auto shared = [&](const scale::Results& part) {
    const auto& s = part.settings;
    return fmt::format("{} workers share {} iterations of about {:.3g} ms; {}", fmt::join(s.workers, ", "), s.iterations,
                       static_cast<double>(s.milliseconds) / s.iterations, sets(part));
  };
  if (article == 1 && results.crc)
    return fmt::format("{} writes of each writer, {} reads of each reader{}; {}", results.crc->settings.operations,
                       results.crc->settings.operations * results.crc->settings.crc_reads, cut_of(*results.crc),
                       sets(*results.crc));
  if (article == 2 && results.several)
    return fmt::format("{} blocks of {} bytes for each of {} threads{}; {}", results.several->settings.operations,
                       results.several->settings.slot_bytes, kThreads, cut_of(*results.several), sets(*results.several));
  if (article == 3 && results.timers)
    return fmt::format("{} timers, {} that are cancelled; {}", results.timers->settings.count,
                       results.timers->settings.cancelled, sets(*results.timers));
  if (article == 4 && results.scaling) return shared(*results.scaling);
  if (article == 5 && results.blocks) return shared(*results.blocks);
  return {};
}

Results plan_of(const Choice& choice) {
  Results plan;
  plan.choice = choice;
  const auto has = [&](std::uint32_t article) { return std::ranges::count(choice.articles, article) > 0; };
  const auto add = [](auto& part, auto settings) { part.emplace(settings, jobs_of(settings)); };
  if (has(1)) {
    add(plan.crc, crc_of(choice));
    add(plan.padding, padding_of(choice));
    add(plan.crc_on_one_cpu, crc_on_one_cpu_of(choice));
  }
  if (has(1) || has(2)) add(plan.handed, handed_of(choice));
  if (has(2)) {
    add(plan.several, several_of(choice));
    add(plan.locks, locks_of(choice));
    add(plan.fewer, fewer_of(choice));
    add(plan.alone, alone_of(choice));
  }
  if (has(3)) add(plan.timers, timers_of(choice));
  if (has(4)) {
    scale::Settings scaling = scale_of(
        choice, {Workload::kCompute, Workload::kAllocate, Workload::kMixed, Workload::kMemory, Workload::kOwnMemory,
                 Workload::kObject, Workload::kScoped, Workload::kReserved, Workload::kWorkerHeap, Workload::kLocked});
    scaling.modes = {Mode::kThreads, Mode::kProcesses, Mode::kPool};
    add(plan.scaling, scaling);
    add(plan.one_cpu, one_cpu_of(choice));
    add(plan.pooled, pooled_of(choice));
  }
  if (has(5)) {
    scale::Settings blocks = scale_of(choice, {Workload::kCompute, Workload::kIsolation, Workload::kHandover});
    blocks.workers = {1, 2, 4};
    if (choice.full) blocks.milliseconds = 1000;  // the article says nothing of it
    blocks.modes = {Mode::kThreads};
    add(plan.blocks, blocks);
    blocks.tests = {Workload::kIsolation, Workload::kHandover};
    std::erase_if(blocks.subjects,
                  [](const scale::Subject& one) { return one.name != "system" && one.name != "owner-article"; });
    blocks.workers = {2, 4};
    blocks.one_cpu = true;
    add(plan.blocks_one_cpu, blocks);
  }
  return plan;
}

}  // namespace freehold::lab::articles
