// SPDX-License-Identifier: MIT
// Facts about processes that the supervisor and its workers ask the system for: the shared clock, memory, CPU time,
// identity; and how a worker's process is ended. Any thread. Cost: now() is a vDSO call; other facts read one file of /proc.
#pragma once
#include <algorithm>
#include <cstdint>

#include "freehold/process/table/task.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::process {

// Nanoseconds of the clock that all processes share (CLOCK_MONOTONIC).
[[nodiscard]] std::uint64_t now() noexcept;
// A limit of the public interface on that clock, where 0 stands for none, as for the greatest; a limit of zero is the
// shortest one.
[[nodiscard]] constexpr std::uint64_t nanoseconds_of(std::optional<Nanoseconds> limit) noexcept {
  return limit && limit != Nanoseconds::max() ? static_cast<std::uint64_t>(std::max<std::int64_t>(limit->count(), 1)) : 0;
}
// When a wait of so long ends; kForever if never.
[[nodiscard]] inline std::uint64_t deadline_of(std::optional<Nanoseconds> time) noexcept {
  return time ? now() + static_cast<std::uint64_t>(std::max<std::int64_t>(time->count(), 0)) : sync::kForever;
}
// How long it is until then; kForever if for ever, 0 if it is past.
[[nodiscard]] inline std::uint64_t left_until(std::uint64_t end) noexcept {
  if (end == sync::kForever) return sync::kForever;
  const std::uint64_t time = now();
  return time < end ? end - time : 0;
}
// Bytes that a process holds in memory for itself, without the table, libraries and mapped files (/proc/<pid>/statm); 0 if
// unknown. pid 0: this process.
[[nodiscard]] std::uint64_t own_resident_bytes(int pid) noexcept;
// Nanoseconds for which a process's main thread was ready to run but had no CPU; 0 if unknown.
[[nodiscard]] std::uint64_t time_without_cpu(int pid) noexcept;
// Bytes that this process can still take before the system, or the memory cgroup that it is in, runs out of memory; a
// guess, which others may make untrue at once; UINT64_MAX if unknown. `root`: of the file system, for tests.
[[nodiscard]] std::uint64_t available_memory(const char* root = "") noexcept;
// Names a process by its number (the lower 22 bits) and its start time, so that a reused number is noticed; 0: no such
// process.
[[nodiscard]] std::uint64_t identity_of(int pid) noexcept;
[[nodiscard]] constexpr int pid_of(std::uint64_t identity) noexcept { return static_cast<int>(identity & ((1u << 22) - 1)); }

// Kills a worker by its descriptor, and by its number the group of its children. The descriptor is never another process's.
// Pre: the worker was not reaped, so its number is not used again.
void kill_with_children(int pid, int pidfd) noexcept;
// Kills the children of a worker that has ended. Pre: as above.
void kill_children(int pid) noexcept;
[[nodiscard]] bool has_died(int pidfd) noexcept;
void wait_for_death(int pidfd) noexcept;

}  // namespace freehold::process
