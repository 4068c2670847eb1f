// SPDX-License-Identifier: MIT
// Does: one thread opens a hundred sessions with many small blocks, closes them, and goes on with little.
// Why:  people found by smaps that [heap] grew from 25 to 407 MiB and stayed: freed, and not given back. Neither two arenas
//       nor a lower threshold for mmap helped, and jemalloc did. github.com/growilabs/growi/pull/11411, rebuilt from that
//       description alone, with a tenth of the memory. It leaves open whether whole pages are free.
// Case retained_after_load: 100
//   Ask: memory
//   Truth: holes
//   Right: holes free-pages
#include "tests/doctor/public/rebuilt.hpp"

int main(int, char** argv) {
  std::vector<rebuilt::Block> documents;  // a few of these outlive their sessions
  {
    unsigned seed = 1;
    std::vector<rebuilt::Block> sessions;
    for (int i = 0; i < 1'600 * std::atoi(argv[1]); ++i) {
      auto& kept = rebuilt::chance(seed) % 40 == 0 ? documents : sessions;
      kept.push_back(rebuilt::block(48 + rebuilt::chance(seed) % 400));
    }
    rebuilt::idle(100);
  }
  rebuilt::idle(600);
}
