// SPDX-License-Identifier: MIT
// A process that runs already, watched from outside: its CPU time in malloc and free, what its threads sleep in, its memory.
// Nothing of it is changed or stopped; it goes on when the time is over. Prints nothing: the caller turns notes and refusals
// into sentences. One thread. Cost: about one hundredth of a CPU for each busy thread.
#pragma once
#include <sys/types.h>

#include <functional>

#include "tools/doctor/facts/watched_process.hpp"

namespace freehold::doctor {

struct AttachCaller {
  int stop_fd = -1;                     // readable: end the watching
  std::function<int()> signal;          // that asks for an early end; 0: none
  std::function<void()> show_watching;  // before the process is watched
  std::function<void()> show_naming;    // before names are looked up
};

// Pre: live::refusal_of(settings.pid) == live::LiveRefusal::kNone, and it is another process.
[[nodiscard]] Attached attach(const AttachSettings& settings, const AttachCaller& caller);

}  // namespace freehold::doctor
