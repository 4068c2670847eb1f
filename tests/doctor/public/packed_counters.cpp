// SPDX-License-Identifier: MIT
// Does: threads increment counters of 24 bytes, each its own, that lie side by side.
// Why:  people reasoned that up to three counters share a line, and showed by a benchmark that one with padding is faster.
//       github.com/centrifugal/centrifugo/pull/77, rebuilt from that description alone.
// Case packed_counters: {n} 160000000
//   Truth: own-sharing
//   Right: own-sharing
#include <atomic>

#include "tests/doctor/public/rebuilt.hpp"

namespace {
struct Counter {
  std::atomic<long> value = 0;
  long last = 0, last_delta = 0;
};
alignas(64) Counter g_metrics[16];
}  // namespace

int main(int argc, char** argv) {
  rebuilt::in_threads(argc, argv, [](unsigned me, long messages) {
    for (long i = 0; i < messages; ++i) g_metrics[me & 15].value.fetch_add(1);
  });
}
