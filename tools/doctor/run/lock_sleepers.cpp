// SPDX-License-Identifier: MIT
#include "tools/doctor/run/lock_sleepers.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#include "freehold/os/threads.hpp"
#include "tools/live/process.hpp"

namespace freehold::doctor {
namespace {

constexpr std::size_t kLooksForSleeps = 8;  // each so often the number of sleeps is read, which takes longer

}  // namespace

bool LockSleepers::sleeps_in_lock(const std::string& call_line) noexcept {
  long call = 0;
  unsigned long word = 0, operation = 0, expected = 0;
  // "-1 ..." is a thread that sleeps elsewhere
  return std::sscanf(call_line.c_str(), "%ld %lx %lx %lx", &call, &word, &operation, &expected) == 4 &&
         os::waits_for_lock(call, operation, expected);
}

void LockSleepers::look(const std::vector<pid_t>& processes) {
  std::size_t seen = 0;
  for (const pid_t process : processes) {
    for (const pid_t thread : live::threads_of(process)) {
      if (++seen > kMostThreads) break;
      const std::string call = live::sleeping_call_of(process, thread);
      const bool in_lock = sleeps_in_lock(call);
      asleep_ += in_lock ? 1 : 0;
      Seen& seen_of = threads_[thread];
      if (in_lock)
        ++seen_of.in_lock;
      else if (!call.empty() && call != "running")
        ++seen_of.elsewhere;
      if (looks_ % kLooksForSleeps == 0) seen_of.sleeps = std::max(seen_of.sleeps, live::sleeps_of(process, thread));
    }
  }
  ++looks_;
}

double LockSleepers::share_of_sleeps() const noexcept {
  double sleeps = 0, in_locks = 0;
  for (const auto& [thread, seen] : threads_) {
    const auto of_thread = static_cast<double>(seen.sleeps);
    sleeps += of_thread;
    if (const std::size_t asleep = seen.in_lock + seen.elsewhere; asleep > 0)
      in_locks += of_thread * static_cast<double>(seen.in_lock) / static_cast<double>(asleep);
  }
  return sleeps > 0 ? in_locks / sleeps : 0;
}

double LockSleepers::mean() const noexcept {
  return looks_ == 0 ? 0 : static_cast<double>(asleep_) / static_cast<double>(looks_);
}

}  // namespace freehold::doctor
