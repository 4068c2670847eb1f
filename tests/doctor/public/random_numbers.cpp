// SPDX-License-Identifier: MIT
// Does: threads choose the partition of each message by rand().
// Why:  rand() takes one lock for all threads; people read that in glibc, and measured rand_r() to be 60 times as fast in
//       1000 threads. github.com/confluentinc/librdkafka/pull/3100, rebuilt from that description alone.
// Case random_numbers: {n} 50000000
//   Truth: own-lock
//   Right: own-lock
#include "tests/doctor/public/rebuilt.hpp"

int main(int argc, char** argv) {
  rebuilt::in_threads(argc, argv, [](unsigned, long messages) {
    long partitions[64] = {};
    for (long i = 0; i < messages; ++i) ++partitions[std::rand() & 63];
    rebuilt::keep(partitions);
  });
}
