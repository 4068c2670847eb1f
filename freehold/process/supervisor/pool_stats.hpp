// SPDX-License-Identifier: MIT
// The figures of a pool, for people and for programs. Any thread may ask for them; they are counted without a lock, so
// figures that belong together may differ by the tasks under way.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "freehold/process/supervisor/pool_events.hpp"

namespace freehold {

namespace process {

/// The tasks of one client.
struct ClientStats {
  std::uint64_t submitted = 0;  ///< tasks that were accepted
  std::uint64_t delivered = 0;  ///< tasks whose result was got, failed ones included
  std::uint64_t failed = 0;     ///< ended without output
  std::uint64_t refused = 0;    ///< tasks that were not accepted
  std::uint64_t median = 0;     ///< nanoseconds from submit() to get(), exact to 6 %
  std::uint64_t p90 = 0;        ///< the same, 90 % quantile
  std::uint64_t p99 = 0;        ///< the same, 99 % quantile
};

/// The workers of one pool.
struct SupervisorStats {
  unsigned live = 0;                                ///< worker processes
  std::uint64_t started = 0;                        ///< worker processes so far
  std::uint64_t handed_on = 0;                      ///< tasks that went to another worker because theirs died
  std::uint64_t retried = 0;                        ///< runs that a component rejected and after which the task runs again
  std::uint64_t damaged = 0;                        ///< times that the table was reset because it had been overwritten
  std::array<std::uint64_t, kExitReasons> ended{};  ///< workers that ended, by ExitReason
};

}  // namespace process

/// The figures of one pool.
struct ProcessPoolStats {
  process::ClientStats tasks;        ///< the pool's own client
  process::SupervisorStats workers;  ///< the supervisor's
  std::uint32_t waiting = 0;         ///< tasks that wait for a worker
  std::uint32_t running = 0;         ///< tasks that run
  std::uint32_t max_open_tasks = 0;  ///< tasks that the table has room for
};

/// @param stats  the figures
/// @return one line for people: "waiting 3, running 4 of 256; 4 workers; 1200 done, 2 failed; median 34 us ...".
[[nodiscard]] std::string text(const ProcessPoolStats& stats);
/// @param stats  the figures
/// @return one JSON object.
[[nodiscard]] std::string json_text(const ProcessPoolStats& stats);
/// @param stats   the figures
/// @param prefix  of each metric's name
/// @return Prometheus' text format (exposition format 0.0.4).
[[nodiscard]] std::string prometheus_text(const ProcessPoolStats& stats,
                                          const std::string& prefix = "freehold_process_pool");

}  // namespace freehold
