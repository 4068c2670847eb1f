// SPDX-License-Identifier: MIT
// Does: work of which one half loses by malloc and the other by something of the program's own; one after the other in each
// thread.
//       lock     one arena (mallopt) and a mutex of the program's own
//       sharing  neighbouring blocks from malloc, and a shared atomic
//       pages    buffers that glibc maps anew each time (mallopt), and a mutex of the program's own
// Why:  by construction both are there; which one weighs more depends on the machine, so either is right, and the mix.
// Case mixed_arena_and_lock: {n} lock 100
//   Truth: mixed
//   Right: mixed+ mixed- allocator-lock own-lock
// Case mixed_neighbours_and_atomic: {n} sharing 100
//   Truth: mixed
//   Right: mixed+ mixed- allocator-false-sharing own-sharing
// Case mixed_pages_and_lock: {n} pages 25
//   Truth: mixed
//   Right: mixed+ mixed- page-faults own-lock
#include <malloc.h>

#include <atomic>
#include <mutex>
#include <string>

#include "tests/doctor/blind/programs/common.h"

namespace {

std::mutex mutex;
std::uint64_t shared_value = 1;
std::atomic<long> shared_count{0};

void in_own_lock(long rounds) {
  for (long i = 0; i < rounds; ++i) {
    std::scoped_lock lock(mutex);
    for (int k = 0; k < 300; ++k) shared_value = shared_value * 6364136223846793005u + 1442695040888963407u;
  }
}

void in_malloc(long rounds, std::size_t bytes) {
  for (long i = 0; i < rounds; ++i) {
    auto* block = static_cast<volatile char*>(std::malloc(bytes));
    for (std::size_t at = 0; at < bytes; at += 4096) block[at] = 1;
    std::free(const_cast<char*>(block));
  }
}

void count_in(volatile long* counter, long rounds) {
  for (long i = 0; i < rounds; ++i) *counter = *counter + 1;
  for (long i = 0; i < rounds / 12; ++i) shared_count.fetch_add(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = std::atoi(argv[1]);
  const std::string mode = argv[2];
  const long size = std::atol(argv[3]) * 100 / threads;
  if (mode == "lock") mallopt(M_ARENA_MAX, 1);
  if (mode == "pages") mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  std::vector<volatile long*> counters;
  for (int i = 0; i < threads; ++i) counters.push_back(static_cast<long*>(std::calloc(1, sizeof(long))));
  in_threads(threads, [&](int i) {
    if (mode == "sharing") return count_in(counters[i], size * 50000);
    for (int part = 0; part < 20; ++part) {
      in_own_lock(size * 4);
      mode == "lock" ? in_malloc(size * 300, 2000) : in_malloc(size * 5 / 20, 512 * 1024);
    }
  });
  std::printf("%s %llx %ld\n", mode.c_str(), static_cast<unsigned long long>(shared_value), shared_count.load());
}
