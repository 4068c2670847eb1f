// SPDX-License-Identifier: MIT
// Counts the threads of running processes that sleep until a lock is free, whoever made the lock. The probe sees the locks
// that are taken by a call. It does not see those inside the C library, as that of a stdio stream; /proc does.
//
// One thread. Cost: about 5 us for each thread and look. Errors: none; a process that may not be looked at has no sleepers.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <string_view>
#include <vector>

namespace freehold::doctor {

class LockSleepers {
 public:
  // Counts once. To be called every few milliseconds.
  void look(const std::vector<pid_t>& processes);
  // Threads that slept in locks, on the average of all looks.
  [[nodiscard]] double mean() const noexcept;

  // `state`: the one line of /proc/PID/task/TID/syscall.
  [[nodiscard]] static bool sleeps_in_lock(std::string_view state) noexcept;

  static constexpr std::size_t kMostThreads = 200;  // of one look; others are not counted

 private:
  std::size_t looks_ = 0, asleep_ = 0;
};

}  // namespace freehold::doctor
