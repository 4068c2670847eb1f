// SPDX-License-Identifier: MIT
// The timed loops, as templates over the structure, so that no operation calls through a pointer.
#pragma once
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lab/timers/background.hpp"
#include "lab/timers/job.hpp"
#include "lab/timers/own_timers.hpp"
#include "lab/timers/structure.hpp"

namespace freehold::lab::timers {

// Resources that the calling thread has used so far.
struct Used {
  std::uint64_t cpu_ns = 0;
  std::uint64_t wall_ns = 0;
  std::uint64_t sleeps = 0;
  std::uint64_t waits = 0;

  [[nodiscard]] static Used now() noexcept {
    const auto clock = [](clockid_t which) {
      timespec time{};
      ::clock_gettime(which, &time);
      return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
    };
    struct rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return {clock(CLOCK_THREAD_CPUTIME_ID), clock(CLOCK_MONOTONIC), static_cast<std::uint64_t>(usage.ru_nvcsw),
            t_lock_waits};
  }
  [[nodiscard]] Cost since(const Used& before, std::uint64_t operations) const noexcept {
    return {operations, cpu_ns - before.cpu_ns, wall_ns - before.wall_ns, sleeps - before.sleeps, waits - before.waits};
  }
};

// The work of one user.
struct Share {
  std::array<Cost, kPhases> costs{};
  std::uint64_t too_late = 0;  // cancels that found their timer fired
  bool correct = true;         // exactly the timers that were set and not cancelled fired, in their order

  [[nodiscard]] Cost& of(Phase phase) noexcept { return costs[static_cast<std::size_t>(phase)]; }
  [[nodiscard]] std::uint64_t cpu_ns() const noexcept {
    std::uint64_t sum = 0;
    for (const Cost& cost : costs) sum += cost.cpu_ns;
    return sum;
  }
};

// step(i) for i in 0 … n-1, as that phase.
template <class Step>
void timed(Share& share, Phase phase, std::uint32_t n, Step step) {
  const Used before = Used::now();
  for (std::uint32_t i = 0; i < n; ++i) step(i);
  share.of(phase) += Used::now().since(before, n);
}

// The times that a test sets, all within the hour.
[[nodiscard]] inline std::vector<Nanoseconds> times_of(const Job& job) {
  std::vector<Nanoseconds> times(job.timers);
  const auto least = std::chrono::seconds(1);
  const std::uint64_t span = static_cast<std::uint64_t>((kHour - least).count());
  const bool is_ascending = job.test == Trial::kAscending || job.test == Trial::kFreshAscending;
  Random random(job.timers);
  for (std::uint32_t i = 0; i < job.timers; ++i) {
    const std::uint64_t at = is_ascending ? span / job.timers * i : below(random.next(), span);
    times[i] = least + Nanoseconds(static_cast<std::int64_t>(at));
  }
  return times;
}

// Returns whether all timers fired, each once, in the order of their times as far as the structure tells them apart.
[[nodiscard]] inline bool all_fired(const FiredLog& log, std::span<const Nanoseconds> times, Nanoseconds order) {
  if (log.count() != times.size()) return false;
  std::vector<bool> seen(times.size());
  Nanoseconds latest{};
  for (const std::uint32_t number : log.numbers()) {
    if (number >= times.size() || seen[number] || times[number] + order < latest) return false;
    seen[number] = true;
    latest = std::max(latest, times[number]);
  }
  return true;
}

// One life of all timers. It is correct if `times`, or none of them after cancelling, fired.
template <Structure S>
[[gnu::noinline]] void live(S& s, const Job& job, std::span<const Nanoseconds> times, Share& share) {
  g_fired.begin(times.size());
  s.begin();
  timed(share, Phase::kCreate, job.timers, [&](std::uint32_t i) { s.create(i); });
  timed(share, Phase::kSet, job.timers, [&](std::uint32_t i) { s.set(i, times[i]); });
  if (job.test == Trial::kCancel) {
    std::uint32_t cancelled = 0;
    timed(share, Phase::kCancel, job.timers, [&](std::uint32_t i) { cancelled += s.cancel(i) ? 1 : 0; });
    share.correct &= cancelled == job.timers;
  } else {
    s.await();
  }
  const Used before = Used::now();
  s.look({});  // an owner that gets timers from other threads sorts them in now
  s.expire();
  share.of(Phase::kHandle) += Used::now().since(before, job.timers);
  share.correct &= job.test == Trial::kCancel ? g_fired.count() == 0 : all_fired(g_fired, times, S::kOrder);
  for (std::uint32_t i = 0; i < job.timers; ++i) s.destroy(i);
}

// Timers that are armed all the time are set for the second hour from then on, so that few if any fire.
[[nodiscard]] inline Nanoseconds in_the_second_hour(std::uint64_t random_bits) noexcept {
  return kHour + Nanoseconds(static_cast<std::int64_t>(below(random_bits, static_cast<std::uint64_t>(kHour.count()))));
}

// Operations between two looks at the CPU time, which is a system call; between them, a second passes for the timers.
inline constexpr std::uint32_t kBlock = 1024;
inline constexpr Nanoseconds kBlockTime = std::chrono::seconds(1);

// Cancels one of this user's timers after the other, at random, and sets it again. Pre: timers begin … end-1 are armed.
template <Structure S>
[[gnu::noinline]] void rearm(S& s, const Job& job, std::uint32_t user, Share& share) {
  const std::uint32_t mine = job.timers / job.users;
  const std::uint32_t first = user * mine;
  const std::uint64_t most_ns = std::uint64_t{job.milliseconds} * 1'000'000;
  Random random(user + 1);
  Nanoseconds now{};
  const Used before = Used::now();
  Used used = before;
  std::uint64_t operations = 0;
  do {
    for (std::uint32_t i = 0; i < kBlock; ++i) {
      const std::uint64_t number = random.next();
      const auto which = first + static_cast<std::uint32_t>(below(number >> 32, mine));
      share.too_late += s.cancel(which) ? 0 : 1;
      s.set(which, now + in_the_second_hour(number));
    }
    operations += kBlock;
    if (user == 0) s.look(now += kBlockTime);
    used = Used::now();
  } while (used.cpu_ns - before.cpu_ns < most_ns);
  share.of(Phase::kRearm) += used.since(before, operations);
}

// How many timers are still armed; none is then.
template <Structure S>
[[nodiscard]] std::uint64_t cancel_all(S& s, const Job& job) {
  std::uint64_t armed = 0;
  for (std::uint32_t i = 0; i < job.timers; ++i) armed += s.cancel(i) ? 1 : 0;
  return armed;
}

}  // namespace freehold::lab::timers
