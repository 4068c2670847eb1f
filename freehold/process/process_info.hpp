// SPDX-License-Identifier: MIT
// Facts about processes that the supervisor and its workers ask the system for: the shared clock, memory, CPU time,
// identity. Any thread. Cost: now() is a vDSO call; each of the others reads one file of /proc.
#pragma once
#include <cstdint>

namespace freehold::process {

// Nanoseconds of the clock that all processes share (CLOCK_MONOTONIC).
[[nodiscard]] std::uint64_t now() noexcept;
// Bytes that a process holds in memory for itself, without the table, libraries and mapped files (/proc/<pid>/statm); 0 if
// unknown. pid 0: this process.
[[nodiscard]] std::uint64_t own_resident_bytes(int pid) noexcept;
// Nanoseconds for which a process's main thread was ready to run but had no CPU; 0 if unknown.
[[nodiscard]] std::uint64_t time_without_cpu(int pid) noexcept;
// Bytes that this process can still take before the system, or the memory cgroup that it is in, runs out of memory; a
// guess, which others may make untrue at once; UINT64_MAX if unknown. `root`: of the file system, for tests.
[[nodiscard]] std::uint64_t available_memory(const char* root = "") noexcept;
// A process by its number (the lower 22 bits) and its start time, so that a reused number is noticed; 0 if there is none.
[[nodiscard]] std::uint64_t identity_of(int pid) noexcept;
[[nodiscard]] constexpr int pid_of(std::uint64_t identity) noexcept { return static_cast<int>(identity & ((1u << 22) - 1)); }

}  // namespace freehold::process
