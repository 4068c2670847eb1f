// SPDX-License-Identifier: MIT
// A library binds the process to one CPU when it is loaded. Two threads multiply small matrices, on that CPU.
// People found by the affinity mask that each process sat on the first core, since a library set it unless told otherwise.
#include <sched.h>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

__attribute__((constructor)) static void initialise_library() {
  cpu_set_t all, first;
  CPU_ZERO(&first);
  sched_getaffinity(0, sizeof all, &all);
  int cpu = 0;
  while (CPU_ISSET(cpu, &all) == 0) ++cpu;
  CPU_SET(cpu, &first);
  sched_setaffinity(0, sizeof first, &first);
}

int main(int argc, char** argv) {
  rebuilt::in_threads(argc, argv, [](unsigned me, long count) {
    constexpr unsigned kEdge = 16;
    std::vector<double> a(kEdge * kEdge, 1.01 + me), b(kEdge * kEdge, 0.99), c(kEdge * kEdge);
    for (long product = 0; product < count; ++product)
      for (unsigned i = 0; i < kEdge; ++i)
        for (unsigned j = 0; j < kEdge; ++j)
          c[i * kEdge + j] += a[i * kEdge + (static_cast<unsigned>(product) + j) % kEdge] * b[j * kEdge + i];
    rebuilt::keep(c);
  });
}
