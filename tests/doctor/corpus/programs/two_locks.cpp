// SPDX-License-Identifier: MIT
// Workers index documents: each token is a block of malloc's, whose arenas were capped to one, and each document's end
// updates a table under the program's mutex. People found nearly all of the indexers' time in the lock of malloc's arena
// once the cap was set to save memory.
#include <malloc.h>

#include <mutex>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

namespace {
std::mutex g_mutex;
std::vector<unsigned> g_postings(4096);
}  // namespace

int main(int argc, char** argv) {
  ::mallopt(M_ARENA_MAX, 1);
  rebuilt::in_threads(argc, argv, [](unsigned me, long documents) {
    unsigned seed = me;
    for (long i = 0; i < documents; ++i) {
      std::vector<rebuilt::Block> tokens;
      for (int token = 0; token < 40; ++token) tokens.push_back(rebuilt::block(1200 + rebuilt::chance(seed) % 600));
      rebuilt::keep(tokens);
      const std::lock_guard lock(g_mutex);
      for (int posting = 0; posting < 3000; ++posting) g_postings[(rebuilt::chance(seed)) % 4096] += 1;
    }
  });
}
