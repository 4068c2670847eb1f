// SPDX-License-Identifier: MIT
// One thread opens a hundred sessions with many small blocks, closes them, and goes on with little.
// People found by smaps that [heap] grew from 25 to 407 MiB and stayed: freed, and not given back. Neither two
// arenas nor a lower threshold for mmap helped, and jemalloc did. The program takes a tenth of that. It leaves open whether
// whole pages are free.
#include "tests/doctor/corpus/programs/rebuilt.hpp"

int main(int, char** argv) {
  std::vector<rebuilt::Block> documents;  // of which a few outlive their sessions
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
