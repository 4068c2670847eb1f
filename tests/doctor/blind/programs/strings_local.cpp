// SPDX-License-Identifier: MIT
// Does: each thread splits its own share of a text into words and counts them in its own map.
// Why:  nothing is shared but malloc. With glibc's arenas a thread allocates from its own: it scales. With the tunables of
//       the third case (one arena, no thread cache), every call takes one lock: then it is the allocator's.
// Case words_local: {n} 54000
//   Truth: none
//   Right: none
//   Seen: strace -f -c of a hundredth of it: 2 futex calls; no mmap, madvise or brk besides start-up
// Case words_local_by_cpus: 0 54000
//   Truth: none
//   Right: none
// Case words_one_arena_by_tunables: {n} 20000
//   Truth: allocator-lock
//   Right: allocator-lock
//   Env: GLIBC_TUNABLES=glibc.malloc.arena_max=1:glibc.malloc.tcache_count=0
#include <sched.h>

#include <string>
#include <unordered_map>

#include "tests/doctor/blind/programs/common.h"

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
