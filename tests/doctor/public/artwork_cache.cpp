// SPDX-License-Identifier: MIT
// Does: sixteen threads cache artwork: each image has a texture that stays, and two buffers that are freed before the next.
// Why:  people reasoned that textures and free buffers alternate, so that nothing larger fits between them: 1.2 GB with
//       glibc, 0.4 with jemalloc. github.com/xbmc/xbmc/pull/11620, rebuilt from that description alone, with less memory.
// Case artwork_cache: 16
//   Ask: memory
//   Truth: live-data
//   Right: live-data
//   Corrected: 2026-11-27: before, it was `holes`. In the order of the description both buffers of an image lie above its texture, and
//     fall to the free top again, where the next texture goes: of 36 MB resident 34.8 are in use, malloc_trim() gives 0.1 back, jemalloc and
//     tcmalloc take 49. With blocks ten times as large, twenty times as large, and with buffers that are freed only after the next
//     texture was made, glibc takes 50, 65 and 41 MB, jemalloc 53, 60 and 53: what the thread measured was not found again.
#include "tests/doctor/public/rebuilt.hpp"

int main(int, char** argv) {
  std::vector<std::thread> threads;
  for (int me = 0; me < std::atoi(argv[1]); ++me)
    threads.emplace_back([seed = static_cast<unsigned>(me)]() mutable {
      std::vector<rebuilt::Block> textures;
      for (int image = 0; image < 120; ++image) {
        const std::size_t bytes = 8'000 + rebuilt::chance(seed) % 20'000;
        rebuilt::Block texture = rebuilt::block(bytes);
        const rebuilt::Block output = rebuilt::block(bytes + bytes * static_cast<std::size_t>(image) / 120);
        const rebuilt::Block between = rebuilt::block(3 * bytes);
        std::memcpy(texture.get(), output.get(), bytes);
        textures.push_back(std::move(texture));
      }
      rebuilt::idle(600);
    });
  for (std::thread& thread : threads) thread.join();
}
