// SPDX-License-Identifier: MIT
// Each thread splits its own share of a text into words and counts them in its own map: with glibc's arenas it scales.
// With one arena and no thread cache, by tunables, every call takes one lock: then it is the allocator's.
#include <sched.h>

#include <string>
#include <unordered_map>

#include "tests/doctor/corpus/programs/common.h"

namespace {

int allowed_cpus() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  return CPU_COUNT(&set);
}

std::size_t count_words(long texts, unsigned seed) {
  std::size_t found = 0;
  for (long i = 0; i < texts; ++i) {
    std::unordered_map<std::string, int> counts;
    for (int word = 0; word < 300; ++word) {
      seed = seed * 1664525u + 1013904223u;
      std::string text = "a word of this text, number " + std::to_string((seed >> 12) % 200);
      ++counts[text];
    }
    found += counts.size();
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int asked = std::atoi(argv[1]);
  const int threads = asked > 0 ? asked : allowed_cpus();
  const long texts = std::atol(argv[2]) / threads;
  std::vector<std::size_t> found(threads * 16);
  in_threads(threads, [&](int i) { found[i * 16] = count_words(texts, i + 1); });
  std::printf("%zu different words in the first share\n", found[0]);
}
