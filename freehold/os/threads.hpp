// SPDX-License-Identifier: MIT
// The system's answers about threads. errno is unchanged. Threads: any. Cost: system calls.
#pragma once
#include <sys/types.h>

#include <cstdint>

#include "freehold/os/futex.hpp"

namespace freehold::os {

// True: libc calls malloc for each thread that it begins, so that a process has one thread until its first malloc.
#if defined(__GLIBC__)
inline constexpr bool kThreadsTakeMalloc = true;
#else  // musl maps them
inline constexpr bool kThreadsTakeMalloc = false;
#endif

// How many threads this process has; 0: the system does not tell. One that ends counts until the system has taken it apart.
// Cost: a system call.
[[nodiscard]] unsigned thread_count() noexcept;

// Returns whether a thread of this process has ended. False also if the system does not tell. If the number was given to a
// new thread of the process, it means that one.
[[nodiscard]] bool thread_has_ended(pid_t process, pid_t thread) noexcept;

// A number that changes whenever the thread of this process has run, while it sleeps; 0: it runs, or the system does not
// tell. Cost: three system calls.
[[nodiscard]] std::uint64_t stamp_of_sleeping_thread(pid_t thread) noexcept;

// Returns whether a system call waits until a lock is free, by its number and arguments: for a change of a word that says
// "held, and awaited", 2 in the C library's locks, in Rust's and in Go's. A wait for a condition or for work expects another
// value.
[[nodiscard]] bool waits_for_lock(long call, unsigned long operation, unsigned long expected) noexcept;

}  // namespace freehold::os
