// SPDX-License-Identifier: MIT
// The agreement between a supervisor and the workers that it starts: descriptors, the wakeup, the environment variable,
// limits, exit statuses. Any thread.
#pragma once
#include <cstdint>
#include <string>

namespace freehold::process {

struct Confinement;

// The descriptors that a worker starts with: the table, the wakeup eventfd, and those that the pool's options name. Those of
// the pool's process lie above them.
inline constexpr int kTableDescriptor = 3, kWakeupDescriptor = 4, kFirstInherited = 5, kLowestPoolDescriptor = 10;
// Moves a descriptor above those of a worker, closed on exec. Returns -1 and errno, also for -1.
[[nodiscard]] int above_worker_descriptors(int fd) noexcept;

// The wakeup eventfd of a pool: clients notify it when the supervisor has to look at the table, and the supervisor polls it.
// Workers inherit it, and attached clients get it. open_wakeup() returns -1 and errno.
[[nodiscard]] int open_wakeup() noexcept;
void notify(int wakeup_fd) noexcept;
// Makes it unreadable until the next notify().
void drain_wakeup(int wakeup_fd) noexcept;

// The variable that carries the worker's slot, its supervisor and its limits.
inline constexpr const char* kWorkerVariable = "FREEHOLD_WORKER";

// The rights as the value of the variable that carries them, and back.
inline constexpr const char* kConfineVariable = "FREEHOLD_CONFINE";
[[nodiscard]] std::string text_of(const Confinement& confinement);
[[nodiscard]] Confinement confinement_of(const std::string& text);
// Limits the calling thread and the processes that it starts. Returns an errno, and the part of the kernel that refused.
[[nodiscard]] int confine(const Confinement& confinement, const char*& part) noexcept;

// When a worker ends by itself; 0 is never.
struct WorkerLimits {
  std::uint64_t idle = 0;     // nanoseconds without a task
  std::uint64_t max_age = 0;  // nanoseconds
  std::uint64_t max_tasks = 0;
  std::uint64_t max_rss = 0;  // bytes; checked after each task of 1 ms or more, or after 64 tasks
};

// Exit statuses of a worker that was not in a task.
enum class WorkerExit : int {
  kClosed = 0,
  kIdle = 80,
  kMaxTasks = 81,
  kMaxRss = 82,
  kMaxAge = 83,
  kNoTable = 84,      // it did not find the table that its supervisor should have given it
  kNoComponent = 85,  // the shared object could not be loaded
  kRevoked = 86,      // its task was taken from it
  kNotConfined = 87,  // the kernel refused the confinement
};

}  // namespace freehold::process
