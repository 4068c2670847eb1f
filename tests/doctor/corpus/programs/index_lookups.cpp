// SPDX-License-Identifier: MIT
// Threads look up seeds of reads in a hash table of 512 MiB, several at a time, each of which misses all caches.
// The author says that the bandwidth of memory limits the program beyond 32 threads. Not measured there.
// With a quarter of the lookups the table, which one thread fills, took 40% of the time of two threads: they waited for it.
#include "tests/doctor/corpus/programs/rebuilt.hpp"

int main(int argc, char** argv) {
  constexpr unsigned kEntries = 1U << 26;
  std::vector<unsigned long> table(kEntries, 7);
  rebuilt::in_threads(argc, argv, [&](unsigned me, long seeds) {
    unsigned seed = me;
    unsigned long hits = 0;
    for (long i = 0; i < seeds; ++i) hits += table[(rebuilt::chance(seed) * 2654435761U) % kEntries];
    rebuilt::keep(hits);
  });
}
