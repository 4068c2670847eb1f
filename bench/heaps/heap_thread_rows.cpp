// SPDX-License-Identifier: MIT
// One cell of `script/bench heaps`' table of threads: each thread makes LIVE blocks of 48 bytes, gives all of them back,
// and goes on so.
//
//   heap_thread_rows MEMORY THREADS LIVE PAIRS
//
//   MEMORY   private        one PrivateHeap for all threads
//            owner-locked   an OwnerLockedHeap for each thread
//            malloc         that of the process: the system's, or a preloaded one
//   PAIRS    of allocate and deallocate, of all threads together
//
// Prints {"user_ns": [...], "wall_ns": [...]}: the CPU time of all threads, and the time on the clock, for each pair; one
// for each round.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "freehold/heap/owner_locked_heap.hpp"
#include "freehold/heap/private_heap.hpp"

namespace {
using namespace freehold;
using Clock = std::chrono::steady_clock;

constexpr unsigned kRounds = 3;
constexpr std::size_t kBytes = 48;

struct Work {
  unsigned threads;
  std::size_t live;
  std::uint64_t pairs;  // pairs of each thread
};

template <class Allocate, class Deallocate>
void work(const Work& what, const Allocate& allocate, const Deallocate& deallocate) {
  std::vector<void*> blocks(what.live);
  for (std::uint64_t done = 0; done < what.pairs; done += what.live) {
    for (void*& block : blocks) {
      block = allocate();
      if (block == nullptr) std::abort();
      *static_cast<volatile char*>(block) = 1;
    }
    for (void* block : blocks) deallocate(block);
  }
}

struct Shared {
  heap::PrivateHeap heap;
  void run(const Work& what) {
    work(what, [this] { return heap.allocate(kBytes); }, [this](void* block) { heap.deallocate(block, kBytes); });
  }
};
struct Own {
  void run(const Work& what) {
    heap::OwnerLockedHeap heap;
    work(what, [&] { return heap.allocate(kBytes); }, [&](void* block) { heap.deallocate(block, kBytes); });
  }
};
struct Malloc {
  void run(const Work& what) {
    work(what, [] { return std::malloc(kBytes); }, [](void* block) { std::free(block); });
  }
};

double user_ns() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_usec) * 1e3;
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

struct Times {
  std::vector<double> user, wall;
};

template <class Memory>
Times measure(const Work& what) {
  Times times;
  Memory memory;
  for (unsigned round = 0; round < kRounds; ++round) {
    std::vector<std::thread> threads;
    const double user = user_ns();
    const auto wall = Clock::now();
    for (unsigned i = 0; i < what.threads; ++i) threads.emplace_back([&] { memory.run(what); });
    for (std::thread& thread : threads) thread.join();
    const auto pairs = static_cast<double>(what.pairs) * what.threads;
    times.wall.push_back(std::chrono::duration<double, std::nano>(Clock::now() - wall).count() / pairs);
    times.user.push_back((user_ns() - user) / pairs);
  }
  return times;
}

void print(const char* name, const std::vector<double>& values, const char* after) {
  std::printf("\"%s\": [", name);
  for (std::size_t i = 0; i < values.size(); ++i) std::printf("%s%.3f", i == 0 ? "" : ", ", values[i]);
  std::printf("]%s", after);
}

}  // namespace

int main(int count, char** words) {
  const std::string_view memory = count == 5 ? words[1] : "";
  const auto number = [&](int word) { return count == 5 ? std::strtoull(words[word], nullptr, 10) : 0; };
  const auto threads = static_cast<unsigned>(number(2));
  const auto run = memory == "private"        ? measure<Shared>
                   : memory == "owner-locked" ? measure<Own>
                   : memory == "malloc"       ? measure<Malloc>
                                              : nullptr;
  if (run == nullptr || threads == 0 || threads > 1000 || number(3) == 0 || number(4) < threads) {
    std::fprintf(stderr, "usage: heap_thread_rows private|owner-locked|malloc THREADS LIVE PAIRS\n");
    return 2;
  }
  const Times times = run({threads, number(3), number(4) / threads});
  std::printf("{");
  print("user_ns", times.user, ", ");
  print("wall_ns", times.wall, "}\n");
  return 0;
}
