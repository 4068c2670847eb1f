// SPDX-License-Identifier: MIT
// A thread of a program's that writes for a library: a pipe that nobody reads, a limit of file sizes, and a cancellation are
// errors of the library's then, and do not end the program or the thread.
#pragma once
#include <pthread.h>
#include <signal.h>

#include <ctime>

#include "freehold/base/keep_errno.hpp"

namespace freehold::base {

// While it lives, the calling thread is not cancelled, and SIGPIPE and SIGXFSZ, which a write of its own brings, do not
// arrive. The write fails with EPIPE or EFBIG, as if they were ignored. Cost: five system calls.
class Undisturbed {
 public:
  Undisturbed() noexcept {
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation_);
    sigset_t pending;
    ::sigemptyset(&signals_);
    if (::sigpending(&pending) != 0) ::sigfillset(&pending);
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
    ::pthread_setcancelstate(cancellation_, nullptr);
  }

 private:
  sigset_t signals_, before_;
  int cancellation_ = 0;
};

}  // namespace freehold::base
