// SPDX-License-Identifier: MIT
// Runs a measured body on N workers at the same time, as threads or as forked processes, and times it.
//
// Each worker prepares itself, calls start(), does its share, and calls finish(). start() is a barrier for the whole group.
// Only the time from the first start() to the last finish() counts. The workers keep their results in shared memory, so
// that the same code measures threads and processes.
#pragma once
#include <pthread.h>

#include <cstdint>
#include <functional>

#include "tools/support/names.hpp"

namespace freehold::inline tools {

// kThreads: threads of one process. kProcesses: processes of one thread each. kPool: threads that submit all work to the
// worker processes of a ProcessPool. kSpawn: threads that start a process for each piece of work.
enum class Mode : std::uint8_t { kThreads, kProcesses, kPool, kSpawn };
inline constexpr Names<Mode, 4> kModes{{"threads", "processes", "pool", "spawn"}};
[[nodiscard]] constexpr const auto& names_of(Mode) { return kModes; }

// The measurement of a group, as bytes that may go through a pipe.
struct GroupReport {
  std::uint64_t elapsed_ns = 0;      // from the first worker's start to the last worker's end
  std::uint64_t cpu_ns = 0;          // user and system time of all workers
  std::uint64_t peak_rss_bytes = 0;  // peak of the process; for processes the sum over the workers
  std::uint64_t correct = 0;         // 1: every worker's checks held
  double others = 0;                 // the share of the CPUs that other programs had; noted by who started the group
};

// One worker, as its body sees it.
class GroupWorker {
 public:
  GroupWorker(std::uint32_t index, pthread_barrier_t& barrier) : index_(index), barrier_(barrier) {}
  [[nodiscard]] std::uint32_t index() const noexcept { return index_; }
  void start() noexcept;  // waits for the whole group
  void finish() noexcept;
  [[nodiscard]] std::uint64_t started_ns() const noexcept { return started_ns_; }
  [[nodiscard]] std::uint64_t finished_ns() const noexcept { return finished_ns_; }
  [[nodiscard]] std::uint64_t cpu_ns() const noexcept { return cpu_finished_ns_ - cpu_started_ns_; }

 private:
  std::uint32_t index_;
  pthread_barrier_t& barrier_;
  std::uint64_t started_ns_ = 0;
  std::uint64_t finished_ns_ = 0;
  std::uint64_t cpu_started_ns_ = 0;
  std::uint64_t cpu_finished_ns_ = 0;
};

// Returns whether the worker's checks held.
using Body = std::function<bool(GroupWorker&)>;

// Runs `body` once per worker and fills in the report's times, memory and correctness. Mode::kPool, kSpawn: runs the client
// threads only; the caller starts the processes and adds their figures.
// Throws std::exception if a process cannot be started or dies. If a thread cannot be started, the threads that already
// wait at the barrier cannot be called back: the process ends with a line on standard error.
void run_group(Mode mode, std::uint32_t workers, const Body& body, GroupReport& report);
// The most memory that a process of this user had; 0: it has ended.
[[nodiscard]] std::uint64_t peak_rss_bytes(pid_t process);

}  // namespace freehold::inline tools
