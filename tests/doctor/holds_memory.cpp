// SPDX-License-Identifier: MIT
// Holds memory of known sizes until its standard input ends: 100 blocks of 8 MiB, 50 of 1 MiB, 20'000 of 256 bytes, these
// by five threads that stay alive. Says "ready" on standard output.
#include <unistd.h>

#include <barrier>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {
constexpr int kThreads = 5;

// Volatile: the compiler may not leave out a value that is never used.
void* volatile g_last;

void allocate(int n, std::size_t bytes) {
  for (int i = 0; i < n; ++i) g_last = std::malloc(bytes);
}
}  // namespace

int main() {
  allocate(100, std::size_t{8} << 20);  // untouched: they cost addresses alone
  allocate(50, std::size_t{1} << 20);
  std::barrier all_have(kThreads);
  std::vector<std::jthread> threads;
  for (int t = 1; t < kThreads; ++t)
    threads.emplace_back([&all_have] {
      allocate(4'000, 256);
      all_have.arrive_and_wait();
      char byte = 0;
      while (::read(STDIN_FILENO, &byte, 1) > 0) continue;
    });
  allocate(4'000, 256);
  all_have.arrive_and_wait();
  if (::write(STDOUT_FILENO, "ready\n", 6) != 6) return 1;
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) continue;
  return 0;
}
