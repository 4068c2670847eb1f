// SPDX-License-Identifier: MIT
// The common part of the programs that were rebuilt from public threads, and of those that hold memory: threads that share a
// count of operations, chance, and blocks that are written to.
#pragma once
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace rebuilt {

// Calls work(number of the thread, its operations) in as many threads as the first argument says; together they make as many
// operations as the second one says.
template <typename Work>
void in_threads(int argc, char** argv, Work work) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const long operations = argc > 2 ? std::atol(argv[2]) : 1'000'000;
  std::vector<std::thread> running;
  for (int me = 0; me < threads; ++me)
    running.emplace_back([&, me] { work(static_cast<unsigned>(me), operations / threads); });
  for (auto& thread : running) thread.join();
}

inline unsigned chance(unsigned& seed) { return (seed = seed * 1664525U + 1013904223U) >> 8; }

template <typename T>
void keep(const T& value) {
  asm volatile("" : : "r"(&value) : "memory");
}

// As a service that waits for work.
inline void idle(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

struct Free {
  void operator()(char* block) const { std::free(block); }
};
using Block = std::unique_ptr<char, Free>;

// A block of malloc's, every byte of it written.
inline Block block(std::size_t bytes) {
  char* const made = static_cast<char*>(std::malloc(bytes));
  if (made == nullptr) std::abort();
  std::memset(made, 'x', bytes);
  return Block(made);
}

}  // namespace rebuilt
