// SPDX-License-Identifier: MIT
// Threads update their own part of arrays; only the line at the border of two parts has data of both.
// People suspected these borders, aligned each part to a line, and measured no difference.
#include "tests/doctor/corpus/programs/rebuilt.hpp"

int main(int argc, char** argv) {
  const std::size_t threads = static_cast<std::size_t>(argc > 1 ? std::atoi(argv[1]) : 2);
  const long steps = argc > 2 ? std::atol(argv[2]) : 1;
  std::vector<double> voltage(100'001, -65), current(100'001, 0.1);
  rebuilt::in_threads(argc, argv, [&](unsigned me, long) {
    const std::size_t begin = voltage.size() * me / threads, end = voltage.size() * (me + 1) / threads;
    for (long step = 0; step < steps; ++step) {
      for (std::size_t i = begin; i < end; ++i) voltage[i] += 0.025 * (current[i] - 0.001 * (voltage[i] + 65));
      rebuilt::keep(voltage);
    }
  });
}
