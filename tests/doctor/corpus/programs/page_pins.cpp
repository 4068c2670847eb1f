// SPDX-License-Identifier: MIT
// Threads search a tree; each search pins the pages on its way, the root among them, under the mutex of each page.
// People found by perf 67% of the time in futex calls, and by reading that every search takes the root's
// mutex.
#include <mutex>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

namespace {
struct alignas(64) Page {
  std::mutex mutex;
  long pins = 0;
  unsigned keys[500] = {};
};
unsigned look_in(Page& page, unsigned key) {
  {
    const std::lock_guard lock(page.mutex);
    ++page.pins;
  }
  unsigned found = 0;
  for (unsigned step = 256; step > 0; step /= 2) found += page.keys[(found + step) % 500] <= key ? step % 3 : 0;
  const std::lock_guard lock(page.mutex);
  --page.pins;
  return found;
}
}  // namespace

int main(int argc, char** argv) {
  std::vector<Page> pages(1 + 16 + 256);
  rebuilt::in_threads(argc, argv, [&](unsigned me, long searches) {
    unsigned seed = me;
    for (long i = 0; i < searches; ++i) {
      const unsigned key = rebuilt::chance(seed);
      unsigned found = look_in(pages[0], key);
      found += look_in(pages[1 + key % 16], key);
      found += look_in(pages[17 + key % 256], key);
      rebuilt::keep(found);
    }
  });
}
