// SPDX-License-Identifier: MIT
// Does: a pool of as many workers as the machine has CPUs computes, and its control group allows it one.
// Why:  people compared the quota with the number of workers: the group is throttled.
//       github.com/uxlfoundation/oneTBB/issues/190, rebuilt from that description alone.
// Case quota_pool: {n} 400000000
//   Truth: cpu-quota
//   Right: cpu-quota
//   Quota: 1
#include "tests/doctor/public/rebuilt.hpp"

int main(int argc, char** argv) {
  rebuilt::in_threads(argc, argv, [](unsigned me, long steps) {
    unsigned seed = me;
    for (long i = 0; i < steps; ++i) rebuilt::chance(seed);
    rebuilt::keep(seed);
  });
}
