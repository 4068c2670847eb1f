// SPDX-License-Identifier: MIT
// Threads parse a text; by an error each goes on from the beginning of its part to the end of the whole text.
// People saw no gain from more threads, and found by reading that the first one parsed all of the lines. More
// CPUs do what is thrown away, and the first thread takes as long as one alone.
#include <string>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

int main(int argc, char** argv) {
  const long threads = argc > 1 ? std::atol(argv[1]) : 2, times = argc > 2 ? std::atol(argv[2]) : 1;
  std::string text;
  for (int i = 0; i < 400'000; ++i) text += std::to_string(i * 37) + (i % 6 == 5 ? '\n' : ',');
  rebuilt::in_threads(argc, argv, [&](unsigned me, long) {
    for (long time = 0; time < times; ++time) {
      long sum = 0, number = 0;
      for (std::size_t at = text.size() / static_cast<std::size_t>(threads) * me; at < text.size(); ++at) {
        const bool is_digit = text[at] >= '0';
        sum += is_digit ? 0 : number;
        number = is_digit ? 10 * number + text[at] - '0' : 0;
      }
      rebuilt::keep(sum);
    }
  });
}
