// SPDX-License-Identifier: MIT
// Does: threads that share an index behind a std::mutex, with mallocs beside or inside.
//       outside  strings are made and dropped outside the lock, from each thread's own arena; the lock is held to compute
//       inside   a std::map of strings is changed inside the lock: its mallocs happen one after the other because of the
//       lock
// Why:  by construction no two threads are in malloc and wait for each other: `outside` has an arena for each, `inside` one
// caller at a time.
//       No malloc, however fast, lets two threads into the lock.
// Case lock_beside_mallocs: {n} outside 700000
//   Truth: own-lock
//   Right: own-lock
//   Seen: strace -f -c of two sevenths of it: 1076 futex calls, no memory taken from the kernel after the start
// Case lock_around_mallocs: {n} inside 2500000
//   Truth: own-lock
//   Right: own-lock mixed-
//   Seen: strace -f -c of a fifth of it: 104 futex calls, 40 mprotect as the one arena grows
#include <map>
#include <mutex>
#include <string>

#include "tests/doctor/blind/programs/common.h"

namespace {

std::mutex mutex;
std::map<unsigned, std::string> shared_index;
std::uint64_t shared_sum = 1;

void outside(long rounds, unsigned seed) {
  for (long i = 0; i < rounds; ++i) {
    std::vector<std::string> words;
    for (unsigned k = 0; k < 4; ++k) words.push_back(std::string(20 + seed % 60 + k, 'x'));
    seed = seed * 1664525u + 1013904223u;
    std::scoped_lock lock(mutex);
    for (int k = 0; k < 700; ++k) {
      shared_sum ^= shared_sum << 13;
      shared_sum ^= shared_sum >> 7;
      shared_sum ^= shared_sum << 17;
    }
  }
}

void inside(long rounds, unsigned seed) {
  for (long i = 0; i < rounds; ++i) {
    seed = seed * 1664525u + 1013904223u;
    std::scoped_lock lock(mutex);
    const unsigned key = (seed >> 8) % 2000;
    if (auto found = shared_index.find(key); found != shared_index.end())
      shared_index.erase(found);
    else
      shared_index.emplace(key, std::string(40 + key % 100, 'y'));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = std::atoi(argv[1]);
  const long rounds = std::atol(argv[3]) / threads;
  in_threads(threads, [&](int i) { (std::strcmp(argv[2], "inside") ? outside : inside)(rounds, i + 1); });
  std::printf("%zu entries, %llx\n", shared_index.size(), static_cast<unsigned long long>(shared_sum));
}
