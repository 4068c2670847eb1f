// SPDX-License-Identifier: MIT
// The workers of a scheduler count their idle and busy loops; all workers' counts of one kind are one vector.
// People read that these counts share lines, and gave each worker its own. Not measured there.
#include "tests/doctor/corpus/programs/rebuilt.hpp"

int main(int argc, char** argv) {
  std::vector<long> idle_loops(64), busy_loops(64), tasks(64);
  rebuilt::in_threads(argc, argv, [&](unsigned me, long loops) {
    for (long i = 0; i < loops; ++i) {
      ++(i % 3 == 0 ? busy_loops : idle_loops)[me & 63];
      if (i % 16 == 0) ++tasks[me & 63];
      rebuilt::keep(idle_loops);
    }
  });
}
