// SPDX-License-Identifier: MIT
/* Helpers of tests: threads, a limit of memory, and a value that the compiler cannot see through. */
#ifndef FREEHOLD_SUITES_GPERFTOOLS_TESTUTIL_H
#define FREEHOLD_SUITES_GPERFTOOLS_TESTUTIL_H

#include <sys/resource.h>

#include <functional>
#include <thread>
#include <vector>

static inline void RunThread(void (*body)()) { std::thread(body).join(); }

static inline void RunManyThreadsWithId(void (*body)(int), int count, int /*stack_bytes*/) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}
static inline void RunManyThreads(void (*body)(), int count) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body);
  for (std::thread& thread : threads) thread.join();
}

static inline void SetTestResourceLimit() {
  rlimit limit;
  getrlimit(RLIMIT_AS, &limit);
  const rlim_t wanted = static_cast<rlim_t>(1) << 30;
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > wanted) limit.rlim_cur = wanted;
  setrlimit(RLIMIT_AS, &limit);
}

template <typename T>
T noopt(T value) {
  asm volatile("" : "+r,m"(value) : : "memory");
  return value;
}

#endif
