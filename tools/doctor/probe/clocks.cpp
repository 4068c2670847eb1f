// SPDX-License-Identifier: MIT
// The probe's clocks: the fast one that durations are read from, and the thread's own, which only system calls tell.
#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "freehold/base/keep_errno.hpp"
#include "tools/doctor/probe/trace_file.hpp"

namespace freehold::doctor::probe {
namespace {

// How often the thread went to sleep.
[[nodiscard]] std::uint64_t sleeps() noexcept {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return static_cast<std::uint64_t>(usage.ru_nvcsw);
}

// The ticks last: what follows is what they are compared with.
[[nodiscard]] SlowClocks slow_clocks() noexcept {
  SlowClocks now{.ticks = 0, .cpu_ns = monotonic_ns(CLOCK_THREAD_CPUTIME_ID), .sleeps = sleeps()};
  now.ticks = ticks();
  return now;
}

}  // namespace

std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t count;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#endif
}

void get_ready(Countdown& calls) noexcept {
  const base::KeepErrno keep;
  calls.left = std::exchange(calls.behind, 0);
  calls.clocks = slow_clocks();
}

Measured::Measured() noexcept : before_(slow_clocks()), ticks_(ticks()) {}
Measured::Measured(const Countdown& calls) noexcept
    : before_(calls.clocks.ticks != 0 ? calls.clocks : slow_clocks()), ticks_(ticks()) {}
// This call's part of the time that the thread was off its CPU since the clocks were read is at most as long as the call
// itself.
OffCpu Measured::off_cpu() const noexcept {
  constexpr double kWorthALookNs = 3000;  // shorter calls did not sleep
  const double wall = static_cast<double>(duration_) / g_file.ticks_per_ns;
  if (wall < kWorthALookNs) return {};
  const auto ran = static_cast<double>(monotonic_ns(CLOCK_THREAD_CPUTIME_ID) - before_.cpu_ns);
  const double since = static_cast<double>(ticks_ + duration_ - before_.ticks) / g_file.ticks_per_ns;
  const auto off_us = since <= ran ? 0 : static_cast<std::uint32_t>(std::min({since - ran, wall, 4e12}) / 1000);
  return sleeps() != before_.sleeps ? OffCpu{.waited_us = off_us, .preempted_us = 0}
                                    : OffCpu{.waited_us = 0, .preempted_us = off_us};
}

}  // namespace freehold::doctor::probe
