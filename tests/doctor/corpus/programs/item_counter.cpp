// SPDX-License-Identifier: MIT
// Threads add and remove elements of a set in buckets of their own; one atomic counter has the number of elements.
// People saw in perf's loads of modified lines that the set's counter made even readers slow.
#include <atomic>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

namespace {
struct alignas(64) Bucket {
  long keys[8] = {};
};
struct Set {
  alignas(64) std::atomic<long> items = 0;
  const Bucket* buckets = nullptr;
};
Set g_set;
}  // namespace

int main(int argc, char** argv) {
  std::vector<Bucket> all(64 * 256);
  g_set.buckets = all.data();
  rebuilt::in_threads(argc, argv, [&](unsigned me, long operations) {
    unsigned seed = me;
    for (long i = 0; i < operations; ++i) {
      Bucket& bucket = all[(me & 63) * 256 + (rebuilt::chance(seed) & 255)];
      long& key = bucket.keys[i & 7];
      g_set.items.fetch_add(key == 0 ? 1 : -1, std::memory_order_relaxed);
      key = key == 0 ? i : 0;
      rebuilt::keep(g_set.buckets);
    }
  });
}
