// SPDX-License-Identifier: MIT
// The program confines itself to the last CPU, as programs do that were pinned for a measurement once: the process before it
// starts its threads (process), or each thread itself (threads). Two CPUs take as long as one.
#include <sched.h>

#include "tests/doctor/corpus/programs/common.h"

namespace {

// The calling thread, and those that it starts from now on.
void pin() {
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof allowed, &allowed);
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &allowed)) --last;
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  sched_setaffinity(0, sizeof one, &one);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = std::atoi(argv[1]);
  const bool each = !std::strcmp(argv[2], "threads");
  if (!each) pin();
  std::vector<std::uint64_t> values(threads * 16);
  in_threads(threads, [&](int i) {
    if (each) pin();
    values[i * 16] = mix(i + 3, std::atol(argv[3]) * 1'000'000 / threads);
  });
  std::printf("%llx\n", static_cast<unsigned long long>(values[0]));
}
