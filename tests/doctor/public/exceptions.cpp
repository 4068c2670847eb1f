// SPDX-License-Identifier: MIT
// Does: threads throw and catch exceptions.
// Why:  people found that the unwinder took a lock of the loader's for each frame, so that throws did not scale. It takes
//       none any more from glibc 2.35 with GCC 12 on, which this program is built with: there it scales, except for the block
//       of each exception. github.com/scylladb/seastar/issues/73, rebuilt from that description alone.
// Case exceptions: {n} 500000
//   Truth: none
//   Right: none
#include <stdexcept>

#include "tests/doctor/public/rebuilt.hpp"

namespace {
[[gnu::noinline]] void handle(long request) {
  if (request >= 0) throw std::runtime_error("refused");
}
}  // namespace

int main(int argc, char** argv) {
  rebuilt::in_threads(argc, argv, [](unsigned, long requests) {
    for (long i = 0; i < requests; ++i) {
      try {
        handle(i);
      } catch (const std::runtime_error& error) {
        rebuilt::keep(error);
      }
    }
  });
}
