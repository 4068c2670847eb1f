// SPDX-License-Identifier: MIT
// Fault: the program may use fewer CPUs than it has threads for. It confines itself, as programs do that were pinned for a
// measurement once; with the setting "free" it does not, and the limit comes from outside, such as a container's quota.
// Two CPUs take as long as one.
#include <sched.h>

#include "tests/doctor/faults/fault.hpp"

namespace {

// The calling thread, and those it starts from now on, to the last CPU.
void pin() {
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof allowed, &allowed);
  CPU_ZERO(&one);
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu)
    if (CPU_ISSET(cpu, &allowed)) {
      CPU_SET(cpu, &one);
      break;
    }
  sched_setaffinity(0, sizeof one, &one);
}

// Allocates without a lock, and within glibc's cache of the thread.
void allocate(unsigned me, std::size_t rounds) {
  fault::Random random(me);
  char* held[4] = {};
  for (std::size_t i = 0; i < rounds; ++i) {
    char*& place = held[random() % 4];
    delete[] place;
    place = new char[24 + random() % 100];
    place[0] = 'x';
    fault::compute(30);
  }
  for (const char* block : held) delete[] block;
}

}  // namespace

int main(int count, char** words) {
  const auto compute = fault::each(300e6, [](unsigned, std::size_t part) { fault::compute(part); });
  return fault::run(count, words,
                    {{"process", [&](const auto& options) { pin(), compute(options); }},
                     {"threads", fault::each(300e6, [](unsigned, std::size_t part) { pin(), fault::compute(part); })},
                     {"allocating", [](const auto& options) { pin(), fault::each(8e6, allocate)(options); }},
                     {"free", compute}});
}
