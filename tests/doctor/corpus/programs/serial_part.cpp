// SPDX-License-Identifier: MIT
// A part that only the main thread does, two thirds of the work, then one that the threads share. More CPUs leave it so.
//   compute  the serial part computes
//   mallocs  it builds and drops a std::map of strings: malloc's time is in it, but only one thread is there
//   atomics  the same, and then the threads add to one shared atomic: two causes of the program's own
//   uneven   no serial part, but one task of five is four times as long as the others together
//   pages    no serial part: threads map, touch and unmap memory by themselves, without malloc
//   discard  no serial part: threads empty their regions by madvise, and touch them again
#include <sys/mman.h>

#include <atomic>
#include <map>
#include <string>

#include "tests/doctor/corpus/programs/common.h"

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

void touch_pages(long times, bool unmaps) {
  constexpr std::size_t kBytes = 1 << 20;
  void* memory = MAP_FAILED;
  for (long i = 0; i < times; ++i) {
    if (unmaps || i == 0) memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (std::size_t at = 0; at < kBytes; at += 4096) static_cast<volatile char*>(memory)[at] = 1;
    unmaps ? munmap(memory, kBytes) : madvise(memory, kBytes, MADV_DONTNEED);
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
    else if (mode == "pages" || mode == "discard")
      touch_pages(size * 70 / threads, mode == "pages");
    else if (mode == "uneven")
      for (int task; (task = next++) < 5;) sum += compute(size * (task ? 250'000 : 4'000'000));
    else
      sum += compute(size * 2'000'000 / threads);
  });
  std::printf("%s %llx\n", mode.c_str(), static_cast<unsigned long long>(sum + shared_count));
}
