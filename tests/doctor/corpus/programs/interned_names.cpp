// SPDX-License-Identifier: MIT
// Parsers of different files intern each name in one table, behind a lock.
// People saw by a profiler that parsing threads wait for the table of names; beyond two threads nothing was
// gained.
#include <mutex>
#include <string>
#include <unordered_set>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

int main(int argc, char** argv) {
  std::mutex mutex;
  std::unordered_set<std::string> names;
  rebuilt::in_threads(argc, argv, [&](unsigned me, long tokens) {
    unsigned seed = me;
    for (long i = 0; i < tokens; ++i) {
      const std::string name = "name" + std::to_string(rebuilt::chance(seed) % 2000);
      const std::lock_guard lock(mutex);
      rebuilt::keep(*names.insert(name).first);
    }
  });
}
