// SPDX-License-Identifier: MIT
#include "freehold/doctor/run/lock_sleepers.hpp"

#include <cstdio>
#include <fstream>
#include <string>

#include "freehold/doctor/run/watch.hpp"
#include "freehold/os/futex.hpp"

namespace freehold::doctor {
bool LockSleepers::sleeps_in_lock(std::string_view state) noexcept {
  long call = 0;
  unsigned long word = 0, operation = 0, expected = 0;
  const std::string line(state);  // "running" for a thread that runs, "-1 ..." for one that sleeps elsewhere
  return std::sscanf(line.c_str(), "%ld %lx %lx %lx", &call, &word, &operation, &expected) == 4 &&
         call == os::Futex::kCall && os::Futex::waits_for_lock(operation, expected);
}

void LockSleepers::look(const std::vector<pid_t>& processes) {
  std::size_t seen = 0;
  for (const pid_t process : processes) {
    for (const pid_t thread : threads_of(process)) {
      if (++seen > kMostThreads) break;
      std::ifstream in("/proc/" + std::to_string(process) + "/task/" + std::to_string(thread) + "/syscall");
      std::string state;
      if (std::getline(in, state) && sleeps_in_lock(state)) ++asleep_;
    }
  }
  ++looks_;
}

double LockSleepers::mean() const noexcept {
  return looks_ == 0 ? 0 : static_cast<double>(asleep_) / static_cast<double>(looks_);
}

}  // namespace freehold::doctor
