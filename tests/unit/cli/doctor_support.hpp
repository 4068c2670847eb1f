// SPDX-License-Identifier: MIT
// A diagnosis made by hand, for tests of what is said and drawn of it: a program that parses in four threads, and whose
// allocator is most of what it loses.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/report/results_json.hpp"

namespace freehold::doctor::report {

using freehold::doctor::Attribution;
using freehold::doctor::Cause;
using freehold::doctor::Estimate;
using freehold::doctor::Treatment;

inline freehold::doctor::Place place_at(const std::string& function, const std::string& file, unsigned line,
                                        std::size_t stacks = 2) {
  freehold::doctor::Place place;
  for (std::size_t i = 0; i < stacks; ++i) {
    freehold::doctor::SiteStack stack{.frames = {}, .share = i == 0 ? 0.7 : 0.3 / static_cast<double>(stacks - 1)};
    stack.frames.push_back({function, file, line, "/opt/parser/bin/parser", false});
    stack.frames.push_back(
        {"Worker::step(Job&)", "src/worker.cpp", 71 + static_cast<unsigned>(i), "/opt/parser/bin/parser", true});
    stack.frames.push_back({"main", "src/main.cpp", 12, "/opt/parser/bin/parser", false});
    place.stacks.push_back(std::move(stack));
  }
  place.all_stacks = stacks;
  place.via = "std::vector<int>::push_back(int&&)";
  return place;
}

inline Attribution attribution_with(std::size_t sites) {
  Attribution of;
  of.processes = 1;
  of.threads = 5;
  of.seconds = 2.1;
  of.cpu_s = 7.9;
  of.thread_s = 8.2;
  of.samples = 48'000;
  of.probe_share = 0.04;
  of.allocating = {.calls = 2.1e7, .cpu_s = 1.6, .blocked_s = 0.5, .cpu_s_error = 0.03, .blocked_s_error = 0.02};
  of.freeing = {.calls = 2.05e7, .cpu_s = 1.3, .blocked_s = 0.7, .cpu_s_error = 0.03, .blocked_s_error = 0.02};
  of.allocations_per_s = 1e7;
  of.frees_per_s = 9.8e6;
  of.cpu_share = 0.37;
  of.cpu_share_error = 0.01;
  of.blocked_share = 0.15;
  of.blocked_share_error = 0.01;
  of.lock_wait_s = 0.2;
  of.lock_wait_share = 0.03;
  of.lock_waits = {
      {place_at("Queue::push(Job)", "src/queue.hpp", 33), freehold::doctor::WaitKind::kMutex, 5200, 0.2, 0.025}};
  of.idle_waits = {{place_at("Queue::pop()", "src/queue.hpp", 51), freehold::doctor::WaitKind::kCondition, 900, 0.4, 0.05}};
  for (std::uint64_t size = 16, i = 0; size <= 65536; size *= 2, ++i)
    of.sizes.push_back({size, 8e6 / static_cast<double>(1 + i * i), 1e8 / static_cast<double>(1 + i)});
  for (double most = 1e-7; most < 5; most *= 10) of.lifetimes.push_back({most, 3e6 * most / (1e-4 + most * most * 100)});
  of.live_at_exit = 12'000;
  for (int i = 1; i <= 200; ++i)
    of.history.push_back({0.0105 * i, 3e7 + 2e5 * i + 4e6 * (i % 13), 1e7 - 2e4 * ((i * 7) % 31)});
  of.peak_live_bytes = 1.2e8;
  of.live_bytes_at_end = 2e6;
  of.remote_share = 0.83;
  of.lines_watched = 40'000;
  of.lines_shared = 1'200;
  of.shared_line_share = 0.03;
  of.lines_shared_for_long = 40;
  for (std::size_t i = 0; i < sites; ++i) {
    freehold::doctor::AllocationSite site;
    site.place =
        place_at("parse_" + std::to_string(i) + "(std::string const&)", "src/parse.cpp", 210 + 3 * static_cast<unsigned>(i));
    const double weight = 1.0 / static_cast<double>((i + 1) * (i + 1));
    site.time = {.calls = 1.4e7 * weight,
                 .cpu_s = 1.1 * weight,
                 .blocked_s = 0.4 * weight,
                 .cpu_s_error = 0.02,
                 .blocked_s_error = 0.01};
    site.time_share = 0.61 * weight;
    site.bytes = 9e8 * weight;
    site.freed_elsewhere = i % 3 == 0 ? 0.97 : 0.01;
    site.typical_bytes = 48 + 16.0 * static_cast<double>(i % 5);
    site.fixed_size = i % 2 == 0;
    if (i % 4 != 3) site.median_lifetime_s = 2e-5 * static_cast<double>(i + 1);
    site.live_bytes_at_peak = 5e7 * weight;
    site.samples = 20'000 / (i + 1);
    of.sites.push_back(std::move(site));
  }
  for (std::uint32_t from = 0; from < 4; ++from) {
    for (std::uint32_t to = 0; to < 4; ++to) {
      if (from != to) of.remote_threads.push_back({4100 + from, 4100 + to, 1.4e6, 1.0 / 12});
    }
  }
  if (sites > 0) {
    of.remote_sites = {{0, place_at("Sink::drain()", "src/sink.cpp", 90), 1.6e7, 0.94},
                       {sites - 1, place_at("Cache::evict()", "src/cache.cpp", 44), 1.0e6, 0.06}};
    of.sharing = {
        {{place_at("Counter::Counter()", "src/counter.cpp", 8), place_at("Counter::Counter()", "src/counter.cpp", 8)},
         {24, 24},
         900,
         40}};
  }
  return of;
}

inline freehold::doctor::Trial trial_of(double wall_s, std::uint64_t peak_rss_bytes = 0) {
  freehold::doctor::Trial trial;
  trial.wall_s = wall_s;
  trial.peak_rss_bytes = peak_rss_bytes;
  return trial;
}

inline constexpr std::size_t kSystemAt = 0, kCappedAt = 1, kFreeholdAt = 2, kPeerAt = 3;

inline Diagnosis diagnosis_with(Cause cause, std::size_t sites = 6) {
  using namespace freehold::doctor;
  Diagnosis d;
  d.settings.command = {"./bin/parser", "--input", "two words.txt"};
  d.settings.widths = {1, 2, 3, 4};
  d.program = "/opt/parser/bin/parser";
  d.machine = {"Made-up CPU", 4, "affinity", {}, "Linux 6.1", "glibc 2.36", "madvise"};
  d.date = "2026-01-02T03:04:05Z";
  d.seconds = 93;
  Experiment& e = d.experiment;
  e.machine_cpus = e.affinity_cpus = e.online_cpus = 4;
  e.most_threads = 5;
  e.variants = {{Treatment::kNone, "system", {}},
                {Treatment::kCappedArenas, "glibc, 2 arenas", {}, {{"MALLOC_ARENA_MAX", "2"}}},
                {Treatment::kFreehold, "freehold", {"/usr/lib/libfreehold.so"}},
                {Treatment::kPeer, "jemalloc", {"/usr/lib/libjemalloc.so.2"}}};
  const double slowness[][4] = {{4.0, 3.0, 2.6, 2.5}, {4.0, 2.9, 2.4, 2.27}, {3.8, 1.95, 1.45, 1.3}, {3.9, 2.05, 1.5, 1.4}};
  for (std::size_t variant = 0; variant < e.variants.size(); ++variant) {
    for (unsigned cpus = 1; cpus <= 4; ++cpus) {
      Cell cell{variant, {.threads = 0, .cpus = cpus, .copies = 1}, {}, {}};
      for (int i = 0; i < 5; ++i) {
        Trial trial;
        trial.wall_s = slowness[variant][cpus - 1] * (1 + 0.01 * i);
        trial.user_s = trial.wall_s * 0.8 * cpus;
        trial.system_s = trial.wall_s * 0.1 * cpus;
        trial.peak_rss_bytes = (variant == kCappedAt ? 80u : 130u) << 20;
        trial.page_faults = 40'000;
        cell.trials.push_back(trial);
      }
      e.cells.push_back(cell);
    }
  }
  Cell copies{0, {.threads = 0, .cpus = 1, .copies = 4}, {}, {}};
  copies.trials.assign(5, trial_of(4.1, 120u << 20));
  e.cells.push_back(copies);
  e.delayed = {{.delay_s = 30e-9, .trials = copies.trials}};

  d.own_allocators = {{.name = "CPython's allocator",
                       .file = "/usr/bin/python3.11",
                       .use_malloc = "PYTHONMALLOC=malloc",
                       .reached = 0.03,
                       .calls = 97'000,
                       .malloc_calls = 3'000,
                       .why_not_counted = {}}};

  Verdict& v = d.verdict;
  v.cause = cause;
  v.alone = {.threads = 0, .cpus = 1, .copies = 1};
  v.all = {.threads = 0, .cpus = 4, .copies = 1};
  v.speedup = {1.53, 1.61, 1.69};
  v.ideal_speedup = 4;
  v.lost = {0.57, 0.6, 0.62};
  v.allocator_share = {0.5, 0.61, 0.7};
  v.parts = {{Cause::kRemoteFrees, v.allocator_share},
             {Cause::kOwnLock, {0.2, 0.25, 0.3}},
             {Cause::kMemoryBandwidth, {0.1, 0.14, 0.2}}};
  v.fixes = {{kCappedAt, {1.02, 1.1, 1.18}, {0.6, 0.62, 0.65}, true, false},
             {kFreeholdAt, {1.8, 1.9, 2.0}, {1, 1, 1}, true, false},
             {kPeerAt, {1.7, 1.8, 1.9}, {1, 1, 1}, true, false}};
  v.best_fix = 1;
  v.scalability = {{kSystemAt, 0.43, 0.02, true, 0.03},
                   {kCappedAt, 0.37, 0.01, true, 0.03},
                   {kFreeholdAt, 0.01, 0.027, true, 0.02},
                   {kPeerAt, 0.01, 0.033, true, 0.02}};

  d.recorded = std::make_shared<const Attribution>(attribution_with(sites));
  d.recorded_trial = trial_of(2.7);
  d.notes = {"tbbmalloc is not installed."};
  d.repetitions = {
      {"the program as it is, 4 CPUs", "taskset -c 0-3 ./bin/parser --input 'two words.txt'"},
      {"freehold, 4 CPUs", "taskset -c 0-3 env LD_PRELOAD=/usr/lib/libfreehold.so ./bin/parser --input 'two words.txt'"}};
  return d;
}

inline nlohmann::ordered_json report_of(const Diagnosis& diagnosis) { return results_json(diagnosis, words_of(diagnosis)); }

}  // namespace freehold::doctor::report
