// SPDX-License-Identifier: MIT
// Each thread builds tables in regions that the program maps itself, fills them once, and unmaps them.
// People found nine tenths of the time in munmap.
#include <sys/mman.h>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

int main(int argc, char** argv) {
  rebuilt::in_threads(argc, argv, [](unsigned, long tables) {
    constexpr std::size_t kBytes = std::size_t{1} << 20, kPage = 4096;
    for (long i = 0; i < tables; ++i) {
      char* const region =
          static_cast<char*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      if (region == MAP_FAILED) std::abort();
      for (std::size_t at = 0; at < kBytes; at += kPage) region[at] = static_cast<char>(at);
      rebuilt::keep(region);
      ::munmap(region, kBytes);
    }
  });
}
