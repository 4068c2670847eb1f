// SPDX-License-Identifier: MIT
// Does: parsers of different files intern each name in one table, behind a lock.
// Why:  people saw by a profiler that parsing threads wait for the table of names; beyond two threads nothing was gained.
//       github.com/scala/scala3/issues/1527, rebuilt from that description alone.
// Case interned_names: {n} 6000000
//   Truth: own-lock
//   Right: own-lock
#include <mutex>
#include <string>
#include <unordered_set>

#include "tests/doctor/public/rebuilt.hpp"

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
