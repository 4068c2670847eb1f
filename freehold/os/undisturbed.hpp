// SPDX-License-Identifier: MIT
// A thread of a program that writes for a library: a pipe without a reader, a limit of file sizes, and a cancellation are
// errors of the library's then, and do not end the program or the thread.
#pragma once
#include "freehold/base/keep_errno.hpp"
#include "freehold/os/not_cancelled.hpp"
#include "freehold/os/system_call.hpp"

namespace freehold::os {

// While it lives, the calling thread is not cancelled, and SIGPIPE and SIGXFSZ, which its writes bring, do not
// arrive. The write fails with EPIPE or EFBIG, as if they were ignored. Cost: four system calls.
class Undisturbed {
 public:
  Undisturbed() noexcept {
    // One that waits is the program's.
    signals_ = (kernel::signal_bit(SIGPIPE) | kernel::signal_bit(SIGXFSZ)) & ~kernel::sigpending();
    kernel::sigprocmask(SIG_BLOCK, &signals_, &before_);
  }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;
  ~Undisturbed() {
    const base::KeepErrno keep;
    while (kernel::sigtimedwait(signals_, {}) > 0) {
    }
    kernel::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  NotCancelled not_cancelled_;
  kernel::SignalSet signals_ = 0, before_ = 0;
};

}  // namespace freehold::os
