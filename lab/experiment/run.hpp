// SPDX-License-Identifier: MIT
// Carries an experiment out: measures every job once in each set, and keeps what it has when the user interrupts it.
//
// A Job is a cell of the experiment's tables and the measurement of it, with
//   kWorker       the word that starts this executable as its worker: "pools-worker"
//   members()     its members that the worker needs (job_words.hpp)
//   run()         the measurement, in the worker: a Report
//   library       preloaded in the worker; an absolute path, or empty
//   limit()       the time after which the worker is stuck
//   complaint(r)  why the report r cannot be used; empty: it can
//   group()       jobs with the same one will be compared, and follow each other
//   name(), place(), text()   what is measured, in which row, and both as the progress line shows them
// A job that failed once is not measured again, because it would fail again, perhaps only at its time limit. Measurements
// beside which other programs had the CPUs are repeated at the end of their set, until as many as a quarter of a set were
// repeated in vain.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <utility>
#include <variant>
#include <vector>

#include "lab/experiment/job_words.hpp"
#include "lab/experiment/measure.hpp"
#include "lab/experiment/others.hpp"
#include "lab/experiment/sample_store.hpp"
#include "lab/experiment/series.hpp"
#include "tools/support/interrupts.hpp"

namespace freehold::lab {

// The indices 0…count-1 in a random order given by `seed`, with the indices of one group side by side, at the place of the
// group's first index. group(i) returns any ordered value. Groups, and the indices within a group, keep the random order.
template <class Group>
[[nodiscard]] std::vector<std::size_t> shuffled_groups(std::size_t count, std::uint32_t seed, Group group) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);
  std::ranges::shuffle(order, random);
  std::vector<std::size_t> place(count);
  std::map<decltype(group(0)), std::size_t> place_of_group;
  for (std::size_t i = 0; i < count; ++i) {
    place[order[i]] = i;
    place_of_group.try_emplace(group(order[i]), i);
  }
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(place_of_group.at(group(i)), place[i]); });
  return order;
}

// In a worker process. Throws Failure if none can be started.
template <class Job>
[[nodiscard]] auto measure(const Job& job, Interrupts& interrupts) {
  using Report = decltype(job.run());
  return measure_in_worker<Report>(Job::kWorker, words_of(job), job.library, job.limit(), interrupts,
                                   [&job](const Report& report) { return job.complaint(report); });
}
// In that process: does the job and sends the report. `words` are those behind Job::kWorker. Returns the exit code.
template <class Job>
int worker_main(const std::vector<std::string>& words) {
  return run_as_worker([&] { return job_of_words<Job>(words).run(); });
}

// measure(job, set, again) -> Measured<Report>, whose `others` says how busy the machine was. Every set has its own order.
// Returns false as soon as a measurement is interrupted.
template <class Job, class Report>
[[nodiscard]] bool measure_sets(std::uint32_t sets, std::vector<JobSeries<Job, Report>>& series, Progress& progress,
                                auto measure) {
  constexpr int kMostPasses = 3;  // a set that a busy machine disturbed twice again, it disturbs the third time as well
  std::size_t done = 0, in_vain = 1 + series.size() / 4;
  for (std::uint32_t set = 0; set < sets; ++set) {
    const auto order = shuffled_groups(series.size(), set, [&](std::size_t at) { return series[at].job.group(); });
    for (int pass = 0; pass < kMostPasses; ++pass) {
      for (const std::size_t i : order) {
        auto& [job, samples, failure] = series[i];
        const bool again = pass > 0;
        if (again && (!failure.empty() || !is_disturbed(samples[set]) || in_vain == 0)) continue;
        progress.show(again ? done : done++, series.size() * sets, job.text() + (again ? ", again" : ""));
        if (!failure.empty()) continue;
        Measured<Report> measured = measure(job, set, again);
        if (std::holds_alternative<Interrupted>(measured)) return false;
        if (const NoReport* none = std::get_if<NoReport>(&measured)) {
          failure = none->why;
          continue;
        }
        samples.resize(set + 1);
        samples[set] = std::get<Report>(measured);
        if (again && is_disturbed(samples[set])) --in_vain;
      }
    }
  }
  return true;
}
// The same in worker processes, of which each is the only work of this program at its time. `store`: has what was measured
// before, and keeps what is; null: none.
template <class Job, class Report>
[[nodiscard]] bool measure_sets(std::uint32_t sets, std::vector<JobSeries<Job, Report>>& series, Interrupts& interrupts,
                                Progress& progress, SampleStore* store) {
  const auto now_s = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  OthersShare others(this_machine().cpus, [&] { return OthersShare::Mark{now_s(), cpu_seconds_of_others()}; });
  return measure_sets(sets, series, progress, [&](const Job& job, std::uint32_t set, bool again) -> Measured<Report> {
    const std::string key =
        fmt::format("{} {} {} set {}", Job::kWorker, fmt::join(words_of(job), " "), job.library, set + 1);
    if (store != nullptr && !again) {
      if (const auto stored = store->find<Report>(key)) return *stored;
    }
    others.begin();
    Measured<Report> measured = measure(job, interrupts);
    const double share = others.end();
    if (Report* const report = std::get_if<Report>(&measured)) {
      report->others = share;
      if (store != nullptr) store->add(key, *report);
    }
    return measured;
  });
}

// Calls measure(), which returns whether it was completed, and notes where, when and how long that was.
void record_run(RunRecord& record, auto measure) {
  record.machine = this_machine();
  record.date = today();
  const auto begin = std::chrono::steady_clock::now();
  record.complete = measure();
  record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace freehold::lab
