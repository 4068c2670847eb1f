// SPDX-License-Identifier: MIT
// A single processor for measurements.
#pragma once
#include <sched.h>

#include <stdexcept>

namespace freehold::lab {

// Keeps the calling thread, and all threads and processes that it will start, on the CPU where it is. Throws
// std::runtime_error.
inline void stay_on_this_cpu() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  if (::sched_setaffinity(0, sizeof one, &one) != 0) throw std::runtime_error("the workers cannot be kept on one CPU");
}

}  // namespace freehold::lab
