// SPDX-License-Identifier: MIT
// Threads allocate, write and free buffers of 0.5 to 30 MB, as sums of large polynomials do.
// People found that glibc gives each buffer back to the system, and that the pages are faulted in anew for the
// next; they raised its thresholds.
#include <cstdint>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

namespace {

using Buffer = std::unique_ptr<std::uint64_t[]>;

Buffer filled(std::size_t words, unsigned seed) {
  Buffer buffer = std::make_unique_for_overwrite<std::uint64_t[]>(words);
  for (std::size_t at = 0; at < words; at += 8) buffer[at] = at + seed;
  rebuilt::keep(buffer[0]);
  return buffer;
}

}  // namespace

int main(int argc, char** argv) {
  rebuilt::in_threads(argc, argv, [](unsigned seed, long operations) {
    for (long i = 0; i < operations; ++i) {
      const std::size_t words = (512 * 1024 + 16UL * rebuilt::chance(seed) % (29 << 20)) / sizeof(std::uint64_t);
      const Buffer one = filled(words, seed), other = filled(words, seed + 1), sum = filled(words, seed + 2);
    }
  });
}
