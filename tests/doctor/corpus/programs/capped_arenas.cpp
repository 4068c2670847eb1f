// SPDX-License-Identifier: MIT
// Threads build and drop lists of terms, whose blocks are too large for glibc's thread caches, with
// MALLOC_ARENA_MAX=1.
// A job script capped the arenas to save memory; people found by timing with and without the cap that all its
// threads waited for one arena.
#include "tests/doctor/corpus/programs/rebuilt.hpp"

int main(int argc, char** argv) {
  rebuilt::in_threads(argc, argv, [](unsigned seed, long rounds) {
    std::vector<std::unique_ptr<unsigned[]>> terms(32);
    for (long round = 0; round < rounds; ++round) {
      const unsigned length = 300 + rebuilt::chance(seed) % 200;
      auto& one = terms[seed >> 27];
      one = std::make_unique_for_overwrite<unsigned[]>(length);
      for (unsigned at = 0; at < length; at += 16) one[at] = seed;
    }
  });
}
