// SPDX-License-Identifier: MIT
// Threads throw and catch exceptions.
// People found that the unwinder took a lock of the loader's for each frame, so that throws did not scale. It
// takes none any more from glibc 2.35 with GCC 12 on, which this program is built with: there it scales, except for
// the block of each exception.
#include <stdexcept>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

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
