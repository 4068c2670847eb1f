// SPDX-License-Identifier: MIT
// The program replaces operator new and delete by its own lists, one for each size, behind one mutex; threads make and
// drop lists of numbers. malloc is called for a slab of 64 KiB now and then; a preloaded one does not see the rest.
#include <list>
#include <mutex>
#include <new>

#include "tests/doctor/corpus/programs/common.h"

namespace {

struct Free {
  Free* next;
};
constexpr std::size_t kLargest = 512, kSlab = 64 * 1024;
std::mutex guard;
Free* lists[kLargest / 16 + 1];

void* take(std::size_t bytes) {
  const std::size_t kind = (bytes + 15) / 16;
  std::scoped_lock lock(guard);
  if (!lists[kind]) {
    char* slab = static_cast<char*>(std::malloc(kSlab));
    for (std::size_t at = 0; at + kind * 16 <= kSlab; at += kind * 16) lists[kind] = new (slab + at) Free{lists[kind]};
  }
  Free* block = lists[kind];
  lists[kind] = block->next;
  return block;
}

void put_back(void* block, std::size_t bytes) {
  const std::size_t kind = (bytes + 15) / 16;
  std::scoped_lock lock(guard);
  lists[kind] = new (block) Free{lists[kind]};
}

}  // namespace

// The size stands in front of each block, so that both forms of delete find it.
void* operator new(std::size_t bytes) {
  auto* block = static_cast<std::size_t*>(bytes + 16 <= kLargest ? take(bytes + 16) : std::malloc(bytes + 16));
  *block = bytes;
  return block + 2;
}
void operator delete(void* block) noexcept {
  if (!block) return;
  auto* start = static_cast<std::size_t*>(block) - 2;
  *start + 16 <= kLargest ? put_back(start, *start + 16) : std::free(start);
}
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int threads = std::atoi(argv[1]);
  const long rounds = std::atol(argv[2]) / threads / 50;
  in_threads(threads, [&](int) {
    for (long round = 0; round < rounds; ++round) {
      std::list<long> numbers;
      for (long k = 0; k < 50; ++k) numbers.push_back(k);
    }
  });
  std::printf("%ld lists by each of %d threads\n", rounds, threads);
}
