// SPDX-License-Identifier: MIT
// Helpers of oneTBB's tests: threads that run one body, random numbers, the size of the address space.
#ifndef FREEHOLD_SUITES_ONETBB_UTILS_H
#define FREEHOLD_SUITES_ONETBB_UTILS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <random>
#include <thread>
#include <vector>

// At once, and without a buffer: memory may be short, and a check that fails ends the program by _exit.
#define REPORT(...) dprintf(STDOUT_FILENO, __VA_ARGS__)

constexpr size_t MByte = size_t{1} << 20;

namespace utils {

class NoAssign {
 public:
  NoAssign() = default;
  NoAssign(const NoAssign&) = default;
  NoAssign& operator=(const NoAssign&) = delete;
};

template <typename Body>
void NativeParallelFor(int count, const Body& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

template <typename Seed = unsigned>
class FastRandom {
 public:
  explicit FastRandom(Seed seed) : state_(seed) {}
  unsigned short get() { return static_cast<unsigned short>(state_() >> 16); }

 private:
  std::mt19937 state_;
};

template <typename T>
T min(T a, T b) {
  return a < b ? a : b;
}
template <typename T, size_t N>
constexpr size_t array_length(const T (&)[N]) {
  return N;
}
template <typename... T>
void suppress_unused_warning(const T&...) {}

inline int LinuxKernelVersion() { return 3 * 1000000; }  // newer than all that tests ask for

enum MemoryStatType { currentUsage, peakUsage };
inline size_t GetMemoryUsage(MemoryStatType which = currentUsage) {
  unsigned long kib = 0;
  char line[200];
  FILE* const status = fopen("/proc/self/status", "r");
  if (status == nullptr) return 0;
  while (fgets(line, sizeof line, status) != nullptr)
    if (sscanf(line, which == peakUsage ? "VmPeak: %lu" : "VmSize: %lu", &kib) == 1) break;
  fclose(status);
  return kib * 1024;
}

}  // namespace utils

#endif
