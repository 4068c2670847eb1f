// SPDX-License-Identifier: MIT
// Does: threads allocate, write and free buffers of 0.5 to 30 MB, as sums of large polynomials do.
// Why:  people found that glibc gives each buffer back to the system, and that the pages are faulted in anew for the next;
// they
//       raised its thresholds. github.com/openfheorg/openfhe-development/issues/1212, rebuilt from that description alone.
// Case polynomials: {n} 100
//   Truth: page-faults
//   Right: page-faults none(lost<0.25)
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

namespace {

using Buffer = std::unique_ptr<std::uint64_t[]>;

Buffer filled(std::size_t words, unsigned seed) {
  Buffer buffer = std::make_unique_for_overwrite<std::uint64_t[]>(words);
  for (std::size_t at = 0; at < words; at += 8) buffer[at] = at + seed;
  asm volatile("" ::"r"(buffer.get()) : "memory");  // somebody reads it
  return buffer;
}

void add(int operations, unsigned seed) {
  for (int i = 0; i < operations; ++i) {
    seed = seed * 1664525 + 1013904223;
    const std::size_t words = (512 * 1024 + (seed >> 4) % (29 << 20)) / sizeof(std::uint64_t);
    const Buffer one = filled(words, seed), other = filled(words, seed + 1), sum = filled(words, seed + 2);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2, operations = argc > 2 ? std::atoi(argv[2]) : 100;
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) running.emplace_back(add, operations / threads, static_cast<unsigned>(i));
  for (auto& thread : running) thread.join();
}
