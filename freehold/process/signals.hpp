// SPDX-License-Identifier: MIT
// Threads that the process pool starts take no signals: those belong to the program's own threads.
#pragma once
#include <signal.h>

namespace freehold::process {

// While it lives, all signals are blocked in this thread, and in the threads that it starts.
class BlockedSignals {
 public:
  BlockedSignals() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &former_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &former_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t former_;
};

}  // namespace freehold::process
