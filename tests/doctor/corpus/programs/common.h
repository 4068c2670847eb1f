// SPDX-License-Identifier: MIT
// The common part of the programs of this folder, in C and in C++: threads that are started and waited for, and work that
// needs a CPU and nothing else. Everything beside that is the program's case.
#pragma once
#ifdef __cplusplus
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

// Calls work(0) to work(threads - 1), each in a thread.
template <class Work>
void in_threads(int threads, Work work) {
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) running.emplace_back(work, i);
  for (auto& thread : running) thread.join();
}
#else
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The same; a thread gets its number as a pointer. Returns what the last one returned.
static inline void* in_threads(int threads, void* (*work)(void*)) {
  pthread_t running[64];
  void* value = NULL;
  for (long i = 0; i < threads; ++i) pthread_create(&running[i], NULL, work, (void*)i);
  for (int i = 0; i < threads; ++i) pthread_join(running[i], &value);
  return value;
}
#endif

// About a nanosecond a step, in registers alone.
static inline uint64_t mix(uint64_t value, long steps) {
  for (long i = 0; i < steps; ++i) {
    value ^= value << 13;
    value ^= value >> 7;
    value ^= value << 17;
  }
  return value;
}
