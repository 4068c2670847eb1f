// SPDX-License-Identifier: MIT
// A thread of a program's that writes for a library: a pipe that nobody reads, a limit of file sizes, and a cancellation are
// errors of the library's then, and do not end the program or the thread.
#pragma once
#include <signal.h>

#include <ctime>

#include "freehold/base/keep_errno.hpp"
#include "freehold/base/not_cancelled.hpp"

namespace freehold::base {

// While it lives, the calling thread is not cancelled, and SIGPIPE and SIGXFSZ, which a write of its own brings, do not
// arrive. The write fails with EPIPE or EFBIG, as if they were ignored. Cost: four system calls.
class Undisturbed {
 public:
  Undisturbed() noexcept {
    sigset_t pending;
    ::sigemptyset(&signals_);
    ::sigpending(&pending);  // which cannot fail
    constexpr int kOfWrites[] = {SIGPIPE, SIGXFSZ};
    for (const int signal : kOfWrites)
      if (::sigismember(&pending, signal) == 0) ::sigaddset(&signals_, signal);  // one that waits is the program's
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;
  ~Undisturbed() {
    const KeepErrno keep;
    constexpr timespec kNow{};
    while (::sigtimedwait(&signals_, nullptr, &kNow) > 0) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  NotCancelled not_cancelled_;
  sigset_t signals_, before_;
};

}  // namespace freehold::base
