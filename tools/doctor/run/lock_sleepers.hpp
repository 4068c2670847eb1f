// SPDX-License-Identifier: MIT
// Counts the threads of running processes that sleep until a lock is free, whoever made the lock. The probe sees the locks
// that are taken by a call. It does not see those inside the C library, as that of a stdio stream; /proc does.
//
// One thread. Cost: about 5 us for each thread and look. Errors: none; a process that may not be looked at has no sleepers.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace freehold::doctor {

class LockSleepers {
 public:
  // Counts once. To be called every few milliseconds.
  void look(const std::vector<pid_t>& processes);
  // Threads that slept in locks, on the average of all looks.
  [[nodiscard]] double mean() const noexcept;
  // Share of the threads' sleeps that were in locks, 0 to 1, however short they were: a thread that sleeps thousands of
  // times a second is awake, or about to be, at most looks.
  [[nodiscard]] double share_of_sleeps() const noexcept;

  // `call_line`: what sleeping_call_of() says of a thread (watch.hpp).
  [[nodiscard]] static bool sleeps_in_lock(const std::string& call_line) noexcept;

  static constexpr std::size_t kMostThreads = 200;  // of one look; others are not counted

 private:
  struct Seen {
    std::size_t in_lock = 0, elsewhere = 0;  // looks that found it asleep
    std::uint64_t sleeps = 0;                // by its own calls, since its start
  };
  std::size_t looks_ = 0, asleep_ = 0;
  std::map<pid_t, Seen> threads_;
};

}  // namespace freehold::doctor
