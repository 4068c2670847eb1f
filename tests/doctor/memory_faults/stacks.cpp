// SPDX-License-Identifier: MIT
// Reason: stacks. Each of many threads once used much of its stack.
#include <latch>

#include "tests/doctor/memory_faults/held.hpp"

namespace {
[[gnu::noinline]] void use_stack() {
  char much[held::kMebibyte];
  std::memset(much, 1, sizeof much);
  asm volatile("" : : "r"(much) : "memory");
}
}  // namespace

int main() {
  constexpr int kThreads = 32;
  std::latch all_have_used(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&all_have_used] {
      use_stack();
      all_have_used.arrive_and_wait();
      held::hold(500);
    });
  }
  for (std::thread& thread : threads) thread.join();
}
