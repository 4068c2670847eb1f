// SPDX-License-Identifier: MIT
// A service answers queries in several threads: each collects rows in blocks, frees them, and has the heap trimmed.
// People found that with many threads each trim looks through the whole heap, and that pages given back are fetched again.
#include <malloc.h>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

int main(int argc, char** argv) {
  rebuilt::in_threads(argc, argv, [](unsigned me, long queries) {
    unsigned seed = me;
    for (long i = 0; i < queries; ++i) {
      std::vector<rebuilt::Block> rows;
      for (int row = 0; row < 400; ++row) rows.push_back(rebuilt::block(1000 + rebuilt::chance(seed) % 7000));
      rebuilt::keep(rows);
      rows.clear();
      ::malloc_trim(0);
    }
  });
}
