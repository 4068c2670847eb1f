// SPDX-License-Identifier: MIT
// NotCancelled: in its scope the calling thread is not cancelled. A thread that is leaves at the next cancellation point
// with a lock held, or in the middle of what it writes. No allocation; async-signal-safe with the libcs that we have.
#pragma once
#include <pthread.h>

#include "freehold/os/libc.hpp"

namespace freehold::os {

class NotCancelled {
 public:
  NotCancelled() noexcept { Libc::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &former_); }
  ~NotCancelled() { Libc::pthread_setcancelstate(former_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int former_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace freehold::os
