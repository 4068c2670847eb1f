// SPDX-License-Identifier: MIT
// Does: a part that only the main thread does, then one that the threads share. The part is two thirds of the work.
//       compute   the serial part computes
//       mallocs   it builds and drops a std::map of strings: malloc's time is in it, but only one thread is there
//       atomics   the same, and then the threads add to one shared atomic: two causes of the program's own
//       uneven    no serial part, but one task of five is four times as long as the others together
//       pages     no serial part: threads map, touch and unmap memory by themselves, without malloc
// Why:  by construction. More CPUs leave the serial part as it is, whichever malloc: a faster one shortens it on one CPU and
// on all alike.
// Case serial_compute: {n} compute 100
//   Truth: serial
//   Right: serial
// Case serial_mallocs: {n} mallocs 100
//   Truth: serial
//   Right: serial mixed-
// Case serial_mallocs_and_atomics: {n} atomics 100
//   Truth: mixed
//   Right: mixed- serial own-sharing
// Case uneven_tasks: {n} uneven 100
//   Truth: serial
//   Right: serial
// Case own_mmap_churn: {n} pages 100
//   Truth: own-page-faults
//   Right: own-page-faults
//   Seen: strace -f -c of a tenth of it: 703 munmap, 725 mmap, all the program's; 1 futex call
#include <sys/mman.h>

#include <atomic>
#include <map>
#include <string>

#include "tests/doctor/blind/programs/common.h"

namespace {

std::atomic<long> shared_count{0};
std::atomic<std::uint64_t> sum{0};

std::uint64_t compute(long steps) { return mix(88172645463325252u, steps); }

std::size_t build_maps(long times) {
  std::size_t entries = 0;
  unsigned seed = 11;
  for (long i = 0; i < times; ++i) {
    std::map<unsigned, std::string> map;
    for (int k = 0; k < 20000; ++k) {
      seed = seed * 1664525u + 1013904223u;
      map[seed >> 10] = "a text that is long enough to be in a heap block.";
    }
    entries += map.size();
  }
  return entries;
}

void touch_pages(long times) {
  constexpr std::size_t kBytes = 1 << 20;
  for (long i = 0; i < times; ++i) {
    auto* memory =
        static_cast<volatile char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (std::size_t at = 0; at < kBytes; at += 4096) memory[at] = 1;
    munmap(const_cast<char*>(memory), kBytes);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = std::atoi(argv[1]);
  const std::string mode = argv[2];
  const long size = std::atol(argv[3]);
  if (mode == "compute") sum += compute(size * 4'000'000);
  if (mode == "mallocs" || mode == "atomics") sum += build_maps(size);
  std::atomic<int> next{0};
  in_threads(threads, [&](int) {
    if (mode == "atomics")
      for (long i = 0; i < size * 400'000 / threads; ++i) shared_count.fetch_add(1);
    else if (mode == "pages")
      touch_pages(size * 70 / threads);
    else if (mode == "uneven")
      for (int task; (task = next++) < 5;) sum += compute(size * (task ? 250'000 : 4'000'000));
    else
      sum += compute(size * 2'000'000 / threads);
  });
  std::printf("%s %llx\n", mode.c_str(), static_cast<unsigned long long>(sum + shared_count));
}
