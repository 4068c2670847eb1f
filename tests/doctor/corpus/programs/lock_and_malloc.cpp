// SPDX-License-Identifier: MIT
// Threads that share something behind one std::mutex, with mallocs beside or inside.
//   outside  strings are made and dropped outside the lock; the lock is held to compute
//   inside   a std::map of strings is changed inside the lock, one caller at a time
//   queue    messages go through one queue; each is freed by another thread than the one that made it
// No malloc, however fast, lets two threads into the lock.
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "tests/doctor/corpus/programs/common.h"

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
    shared_sum = mix(shared_sum, 700);
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

void queue(long rounds, unsigned seed) {
  static std::deque<std::string> messages;
  for (long i = 0; i < rounds; ++i) {
    std::string message(100 + (i + seed) % 100, 'x');
    std::scoped_lock lock(mutex);
    messages.push_back(std::move(message));
    shared_sum = mix(shared_sum, 1500);
    if (messages.size() > 1000) messages.pop_front();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = std::atoi(argv[1]);
  const long rounds = std::atol(argv[3]) / threads;
  in_threads(threads, [&](int i) { (argv[2][0] == 'o' ? outside : argv[2][0] == 'i' ? inside : queue)(rounds, i + 1); });
  std::printf("%zu entries, %llx\n", shared_index.size(), static_cast<unsigned long long>(shared_sum));
}
