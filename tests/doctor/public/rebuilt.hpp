// SPDX-License-Identifier: MIT
// The common part of the programs of this folder: threads that share a count of operations, chance, and blocks that are
// written to. The head of each program says what its thread of an issue found, and was written before the doctor was asked.
#pragma once
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/doctor/memory_faults/held.hpp"

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

using held::Block;
using held::block;

inline void idle(int ms) { held::hold(ms); }

}  // namespace rebuilt
