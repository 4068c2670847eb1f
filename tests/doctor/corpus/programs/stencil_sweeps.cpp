// SPDX-License-Identifier: MIT
// Threads sweep over their parts of three arrays that are far larger than the caches, and do little arithmetic on each
// element. People found that a solver of this kind is bound by the memory's bandwidth, which the cores share.
#include <algorithm>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

int main(int argc, char** argv) {
  constexpr std::size_t kPart = std::size_t{4} << 20;  // doubles: 32 MiB
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  rebuilt::in_threads(argc, argv, [threads](unsigned, long sweeps) {
    const std::size_t part = kPart * 2 / static_cast<std::size_t>(threads);
    std::vector<double> from(part, 1), to(part), flux(part, 0.5);
    for (long sweep = 0; sweep < sweeps * threads; ++sweep) {
      for (std::size_t i = 0; i < part; ++i) to[i] = from[i] + 0.1 * flux[i];
      std::swap(from, to);
      rebuilt::keep(from);
    }
  });
}
