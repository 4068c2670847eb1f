// SPDX-License-Identifier: MIT
// One half of the work loses by malloc and the other by something of the program's own, one after the other in each thread.
//   lock     one arena (mallopt) and a mutex of the program's own
//   sharing  neighbouring blocks from malloc, and a shared atomic
//   pages    buffers that glibc maps anew each time (mallopt), and a mutex of the program's own
//   parts    as lock, but all do the first half before the second begins, so that what is lost adds up; the seconds of both
//             halves are printed, by which the harness knows the true share
// Which one weighs more depends on the machine, so either is right, and the mix.
#include <malloc.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <mutex>
#include <string>

#include "tests/doctor/corpus/programs/common.h"

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

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Loses time in malloc and in the lock, one after the other.
void parts(int threads, long size) {
  const double began = seconds();
  double between = 0;
  std::barrier all(threads, [&]() noexcept { between = seconds(); });
  in_threads(threads, [&](int) {
    in_malloc(size * 6000, 2000);
    all.arrive_and_wait();
    in_own_lock(size * 4000);
  });
  std::printf("%f %f\n", between - began, seconds() - between);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = std::atoi(argv[1]);
  const std::string mode = argv[2];
  const long size = std::atol(argv[3]) * 100 / threads;
  if (mode == "lock" || mode == "parts") mallopt(M_ARENA_MAX, 1);
  if (mode == "pages") mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  if (mode == "parts") return parts(threads, size), 0;
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
