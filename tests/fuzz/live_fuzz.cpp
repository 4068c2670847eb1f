// SPDX-License-Identifier: MIT
// Random words in the memory that a process publishes, and the readers of it: `freehold stats`, `heap snapshot` and
// `doctor --pid` may look at a hostile process as root. They must end and take little memory, whatever they find.
//
//   live_fuzz [ROUNDS [SEED]]
//
// A child of fork has an engine, heaps, pools and a heap profile. For each round it restores what it publishes and writes
// some words over it. This process reads it with a bound on its address space and on the time.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "freehold/alloc/engine.hpp"
#include "freehold/alloc/observe/profile.hpp"
#include "freehold/heap.hpp"
#include "freehold/heap/live_heap.hpp"
#include "freehold/pool.hpp"
#include "freehold/pool/named_pools.hpp"
#include "freehold/sync/live_list.hpp"
#include "tools/live/figures.hpp"
#include "tools/live/process.hpp"
#include "tools/live/profile.hpp"
#include "tools/live/stats.hpp"

namespace freehold::fuzz {
namespace {
using live::LiveListHead;
using live::LiveMemory;

constexpr std::size_t kMostBytes = std::size_t{256} << 20;  // that a reader may take
constexpr unsigned kMostSeconds = 60;

struct Published {
  std::uint64_t address;
  std::vector<std::uint64_t> words;  // as they were

  [[nodiscard]] std::uint64_t* data() const { return reinterpret_cast<std::uint64_t*>(address); }
};

// Readers look at these, by following them as they do.
class Finder {
 public:
  std::vector<Published> find() {
    for (const LiveMemory::Mark& mark : memory_.marks(live::maps_of(::getpid()))) {
      if (mark.kind == LiveMemory::Kind::kEngine) {
        add(mark.address, sizeof(alloc::LiveDirectory));
        alloc::LiveTables tables{};
        if (memory_.read(mark.address + offsetof(alloc::LiveDirectory, tables), tables)) add_tables(tables);
      } else if (LiveListHead head{}; memory_.read(mark.address, head)) {
        add_list(mark.address, head);
      }
    }
    return std::move(found_);
  }

 private:
  void add(std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t begin = address / 8 * 8;
    Published one{begin, std::vector<std::uint64_t>((address + bytes - begin + 7) / 8)};
    if (memory_.read(one.address, one.words)) found_.push_back(std::move(one));
  }
  void add_pointed(std::uint64_t place, std::uint64_t bytes) {
    std::uint64_t address = 0;
    add(place, 8);
    if (memory_.read(place, address) && address != 0) add(address, bytes);
  }
  void add_tables(const alloc::LiveTables& tables) {
    add_pointed(tables.threads.first, tables.threads.record_bytes);
    for (const std::uint64_t place : {tables.threads.changes, tables.classes.past_refills, tables.classes.span_count})
      add(place, 8);
    add(tables.classes.span_classes, 512);
    for (const auto& table : tables.classes.tables) add(table.words, 4096);
  }
  void add_list(std::uint64_t address, const LiveListHead& head) {
    add(address, sizeof head);
    add(head.changes, 8);
    if (head.layout != 0) add(head.layout, head.layout_bytes);
    if (head.kind == sync::LiveList::kProfile) {
      profile::LiveProfile layout{};
      if (!memory_.read(head.layout, layout)) return;
      add(head.layout, sizeof layout);
      add(layout.sums, sizeof(profile::LiveSums));
      add(layout.places, 4096);
      add(layout.stack_words, 4096);
      add(layout.used_stack_words, 8);
      add(layout.heap_names, profile::kHeapNames * sizeof(profile::LiveHeapName));
      return;
    }
    std::uint64_t record = 0;
    add(head.first, 8);
    for (int n = 0; n < 3 && memory_.read(n == 0 ? head.first : record + head.next, record) && record != 0; ++n) {
      add(record + head.next, 8);
      add(record + head.data, head.data_bytes);
      if (head.kind == sync::LiveList::kHeaps) add_pointed(record + head.data + offsetof(heap::LiveHeap, heap), 4096);
      if (head.kind == sync::LiveList::kPools) add_pointed(record + head.data + offsetof(pool::LivePool, opened_words), 8);
    }
  }

  LiveMemory memory_{::getpid(), live::kMostScannedBytes};
  std::vector<Published> found_;
};

// Few words in most rounds, so that readers go deep. The marks stay: without one there is nothing to read.
void write_over(const std::vector<Published>& published, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::uint64_t n = 1 + random() % 6; n > 0; --n) {
    const Published& one = published[random() % published.size()];
    const std::size_t i = random() % one.words.size();
    std::uint64_t& word = one.data()[i];
    if (i < 2 && one.words.size() > 7) continue;
    const std::uint64_t half = random() % 2 == 0 ? 0xffffffffU : ~std::uint64_t{0xffffffffU};
    switch (random() % 7) {
      case 0: word = random(); break;
      case 1: word = (word & ~half) | (random() & half); break;
      case 2: word |= half; break;
      case 3: word = random() % 256; break;
      case 4: word = published[random() % published.size()].address; break;
      case 5: word ^= std::uint64_t{1} << random() % 64; break;
      default: word = std::uint64_t{1} << random() % 40;
    }
  }
}

// Takes seeds, and answers each when the words are written. Allocates nothing: its lists may be damaged.
[[noreturn]] void be_victim(const std::vector<Published>& published, int seeds, int answers) {
  for (std::uint64_t seed = 0; ::read(seeds, &seed, sizeof seed) == sizeof seed;) {
    for (const Published& one : published)
      std::memcpy(one.data(), one.words.data(), one.words.size() * sizeof(std::uint64_t));
    write_over(published, seed);
    if (::write(answers, &seed, 1) != 1) break;
  }
  ::_exit(0);
}

void bound_memory() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit most{pages * static_cast<std::size_t>(::getpagesize()) + kMostBytes, RLIM_INFINITY};
  ::setrlimit(RLIMIT_AS, &most);
}

int fuzz(std::uint64_t rounds, std::uint64_t first) {
  PrivateHeap heap({.name = "fuzzed"});
  auto pool = ObjectPool<int>::growing(100'000, {.name = "fuzzed"});
  const auto object = pool.make();
  void* const block = heap.allocate(100);
  (void)alloc::start_profile(4096);
  for (int i = 0; i < 2'000; ++i) static_cast<void>(alloc::allocate(500));
  const std::vector<Published> published = Finder().find();
  int seeds[2], answers[2];
  if (::pipe(seeds) != 0 || ::pipe(answers) != 0) return 3;
  const pid_t victim = ::fork();
  if (victim == 0) ::close(seeds[1]), be_victim(published, seeds[0], answers[1]);
  ::close(answers[1]);  // so that a victim that dies is seen
  bound_memory();
  std::uint64_t read = 0;
  std::chrono::nanoseconds longest{0};
  for (std::uint64_t seed = first; seed < first + rounds; ++seed) {
    char answer = 0;
    if (::write(seeds[1], &seed, sizeof seed) != sizeof seed || ::read(answers[0], &answer, 1) != 1) return 3;
    ::alarm(kMostSeconds);
    const auto begin = std::chrono::steady_clock::now();
    try {
      read += live::read_live_stats(victim).refusal == live::LiveRefusal::kNone ? 1 : 0;
      (void)live::read_live_profile(victim, true, std::chrono::milliseconds(20));
      (void)live::read_live_figures(victim, live::maps_of(victim));
    } catch (const std::bad_alloc&) {
      std::fprintf(stderr, "live_fuzz: a reader takes more than %zu MiB: live_fuzz 1 %llu\n", kMostBytes >> 20,
                   static_cast<unsigned long long>(seed));
      return 1;
    }
    longest = std::max(longest, std::chrono::steady_clock::now() - begin);
  }
  ::close(seeds[1]);
  int status = 0;
  ::waitpid(victim, &status, 0);
  heap.deallocate(block, 100);
  std::printf("%zu places; %llu rounds, %llu of them read; longest %.2f s\n", published.size(),
              static_cast<unsigned long long>(rounds), static_cast<unsigned long long>(read),
              std::chrono::duration<double>(longest).count());
  // A run in which nothing was read, or nothing refused, has tried nothing.
  return status == 0 && (rounds < 100 || (read > 0 && read < rounds)) ? 0 : 1;
}

}  // namespace
}  // namespace freehold::fuzz

int main(int argc, char** argv) {
  const std::uint64_t rounds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 500;
  return freehold::fuzz::fuzz(rounds, argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
}
