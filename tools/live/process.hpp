// SPDX-License-Identifier: MIT
// Reads what the kernel tells of a process that runs: its family, its threads, what they sleep in, its mappings, its user.
// One thread; the process may end between any two calls.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace freehold::live {

// A process and its descendants, itself first. Those that left the family (daemons) are not among them, unless they are, or
// descend from, `adopted`.
[[nodiscard]] std::vector<pid_t> family_of(pid_t root, const std::vector<pid_t>& adopted = {});
// The system's numbers of its threads; empty: it has ended, or may not be looked at.
[[nodiscard]] std::vector<pid_t> threads_of(pid_t process);
// A thread of the process that has not ended: its first, or after the first one's end (pthread_exit) another. The kernel
// shows the process's memory under the number of such a thread alone. 0: the process has ended.
[[nodiscard]] pid_t thread_with_memory(pid_t process);
// The text of its /proc/PID/maps; empty: it has ended, or may not be looked at.
[[nodiscard]] std::string maps_of(pid_t process);
// The system call that a thread sleeps in, as /proc says it: "202 0x7f… 0x80 … stack-pointer program-counter"; "running".
// Empty: it has ended, or may not be looked at.
[[nodiscard]] std::string sleeping_call_of(pid_t process, pid_t thread);
// Counts how often a thread has gone to sleep by itself; 0 also if it has ended.
[[nodiscard]] std::uint64_t sleeps_of(pid_t process, pid_t thread);
// Returns whether a socket of the family's waits for connections: TCP or local.
[[nodiscard]] bool listens(pid_t root);
// The number of the user that the process runs as.
[[nodiscard]] std::uint64_t user_of(pid_t pid);
// The process's command, as the system has it ("sleep"); empty: it has ended.
[[nodiscard]] std::string short_name_of(pid_t pid);

}  // namespace freehold::live
