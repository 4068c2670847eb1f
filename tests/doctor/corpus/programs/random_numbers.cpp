// SPDX-License-Identifier: MIT
// Threads choose the partition of each message by rand().
// rand() takes one lock for all threads; people read that in glibc, and measured rand_r() to be 60 times as
// fast in 1000 threads.
#include "tests/doctor/corpus/programs/rebuilt.hpp"

int main(int argc, char** argv) {
  rebuilt::in_threads(argc, argv, [](unsigned, long messages) {
    long partitions[64] = {};
    for (long i = 0; i < messages; ++i) ++partitions[std::rand() & 63];
    rebuilt::keep(partitions);
  });
}
