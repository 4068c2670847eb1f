// SPDX-License-Identifier: MIT
// Does one job on one structure, from its construction to the report. Except in the fresh tests it does the timed work once
// before, so that memory is allocated and its pages are touched. The load begins after that.
#pragma once
#include <optional>
#include <vector>

#include "lab/experiment/memory.hpp"
#include "lab/timers/loops.hpp"

namespace freehold::lab::timers {

// Timers come and go, life after life, until time is up; once in a fresh process.
template <Structure S>
Share run_lives(S& s, const Job& job, GroupWorker& worker, Report& report) {
  const std::vector<Nanoseconds> times = times_of(job);
  Share warm_up, share;
  if (!is_fresh(job.test)) live(s, job, times, warm_up);
  const Background background(job.load, job.background);
  worker.start();
  const std::uint64_t before = background.operations();
  do {
    live(s, job, times, share);
  } while (!is_fresh(job.test) && share.cpu_ns() < std::uint64_t{job.milliseconds} * 1'000'000);
  worker.finish();
  report.background_operations = background.operations() - before;
  background.wait_for_each();
  share.correct &= warm_up.correct;
  return share;
}

// Timers stay, and are cancelled and set again, by one user or several.
template <Structure S>
Share run_rearming(S& s, const Job& job, GroupWorker& worker, Report& report) {
  std::optional<Background> background;
  Share share;
  std::uint64_t before = 0;
  if (worker.index() == 0) {
    Random random(job.timers);
    s.begin();
    for (std::uint32_t i = 0; i < job.timers; ++i) {
      s.create(i);
      s.set(i, in_the_second_hour(random.next()));
    }
    s.look({});  // an owner that gets timers from other threads sorts them in once, before the time begins
    background.emplace(job.load, job.background);
    before = background->operations();
  }
  worker.start();
  rearm(s, job, worker.index(), share);
  worker.finish();
  if (background) {
    report.background_operations = background->operations() - before;
    background->wait_for_each();
  }
  return share;
}

template <Structure S>
Report run_on(const Job& job) {
  keep_heap();
  const bool lives = is_life(job.test);
  S s(job.timers, lives && job.test != Trial::kCancel);
  if (!lives) g_fired.begin(0);
  Report report;
  std::vector<Share> shares(job.users);
  const Body body = [&](GroupWorker& worker) {
    shares[worker.index()] = lives ? run_lives(s, job, worker, report) : run_rearming(s, job, worker, report);
    return shares[worker.index()].correct;
  };
  run_group(Mode::kThreads, job.users, body, report);
  if (!lives) {
    // Every timer that was set and not cancelled has fired or is still armed.
    std::uint64_t left = job.timers;
    for (const Share& share : shares) left += share.too_late;
    if (cancel_all(s, job) + g_fired.count() != left) report.correct = 0;
  }
  for (std::size_t phase = 0; phase < kPhases; ++phase) {
    for (const Share& share : shares) {
      const std::uint64_t slowest = std::max(report.costs[phase].wall_ns, share.costs[phase].wall_ns);
      report.costs[phase] += share.costs[phase];
      report.costs[phase].wall_ns = slowest;
    }
  }
  return report;
}

}  // namespace freehold::lab::timers
