// SPDX-License-Identifier: MIT
// The system's numbers of threads. Threads: any. Cost: a system call each.
#pragma once
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "freehold/base/keep_errno.hpp"

namespace freehold::os {

// True: libc calls malloc for each thread that it begins, so that a process has one thread until its first malloc.
#if defined(__GLIBC__)
inline constexpr bool kThreadsTakeMalloc = true;
#else  // musl maps them
inline constexpr bool kThreadsTakeMalloc = false;
#endif

// The system's number of the calling thread.
[[nodiscard]] inline pid_t thread_id() noexcept { return static_cast<pid_t>(syscall(SYS_gettid)); }

// Whether a thread of this process has ended. False also if the system does not tell. A number may have been given to a new
// thread of the process meanwhile; then that one is meant. errno is unchanged.
[[nodiscard]] inline bool thread_has_ended(pid_t process, pid_t thread) noexcept {
  const base::KeepErrno keep;
  return syscall(SYS_tgkill, process, thread, 0) != 0 && errno == ESRCH;  // 0 is no signal: only asks
}

// A number that changes whenever the thread of this process has run, while it sleeps; 0: it runs, or the system does not
// tell. errno is unchanged. Cost: three system calls.
[[nodiscard]] std::uint64_t stamp_of_sleeping_thread(pid_t thread) noexcept;

}  // namespace freehold::os
