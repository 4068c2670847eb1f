// SPDX-License-Identifier: MIT
// Programs whose pages are kept by few blocks, and that know by which. All of them allocate some 100 MiB, mostly
// temporaries, and free these. Says "truth SITE BYTES" for what each site's blocks keep of the free bytes of their pages,
// "resident BYTES" after a trim, and "ready"; a thread allocates and frees all the time. Ends with its standard input.
//   pinned random      one block in 15 is kept, at random, of 16 B to 2 KiB
//   pinned sessions    16 sessions at a time, of 200 blocks; one of them is kept
//   pinned one_size    one block of 48 bytes in 15
//   pinned cache       a cache whose entries are replaced at random, beside requests' temporaries
//   pinned leak        each request leaks one small block
//   pinned shares      as in jemalloc#2850 a seventh is in use, of several sizes: by three sites, mostly the first
//   pinned MODE heap   what is kept lies in a private heap, by a scope around the call
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "freehold/heap_scope.hpp"

namespace {

freehold::PrivateHeap* g_heap = nullptr;  // where what is kept lies; null: with all else

void* touched(void* block, std::size_t bytes) {
  if (block == nullptr) std::abort();
  return std::memset(block, 1, bytes);
}
void* keep(std::size_t bytes) {
  if (g_heap == nullptr) return touched(std::malloc(bytes), bytes);
  const freehold::HeapScope scope(*g_heap);
  return touched(std::malloc(bytes), bytes);
}

}  // namespace

// There is a function for each, so that stacks differ; each does something behind the call, which is no jump then.
#define SITE(name, allocate)                                           \
  extern "C" __attribute__((noinline)) void* name(std::size_t bytes) { \
    void* volatile block = allocate;                                   \
    return block;                                                      \
  }
SITE(index_site, keep(bytes))
SITE(session_site, keep(bytes))
SITE(log_site, keep(bytes))
SITE(temporary_site, touched(std::malloc(bytes), bytes))

namespace {

constexpr const char* kSites[] = {"index_site", "session_site", "log_site"};
using Site = void* (*)(std::size_t);
constexpr Site kKeeping[] = {index_site, session_site, log_site};

struct Kept {
  void* block;
  unsigned site;
  std::size_t bytes;
};
std::vector<Kept> g_kept;
std::vector<void*> g_temporaries;

struct Random {
  std::uint64_t state = 88172645463325252U;
  std::uint64_t operator()() {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  }
  std::size_t below(std::size_t n) { return (*this)() % n; }
  std::size_t size() {  // as many in each doubling from 16 B to 2 KiB
    const std::size_t least = std::size_t{16} << below(7);
    return least + below(least);
  }
};
Random g_random;

void keep_one(unsigned site, std::size_t bytes) { g_kept.push_back({kKeeping[site](bytes), site, bytes}); }
void use_one(std::size_t bytes) { g_temporaries.push_back(temporary_site(bytes)); }
void free_temporaries() {
  for (void* const block : g_temporaries) std::free(block);
  g_temporaries.clear();
}

constexpr std::size_t kBytes = std::size_t{100} << 20;

void one_in(std::size_t n, std::size_t (*size)()) {
  for (std::size_t sum = 0; sum < kBytes;) {
    const std::size_t bytes = size();
    sum += bytes;
    g_random.below(n) == 0 ? keep_one(0, bytes) : use_one(bytes);
  }
}
void sessions() {
  for (std::size_t sum = 0; sum < kBytes;) {
    const std::size_t kept = g_random.below(16);
    for (std::size_t i = 0; i < std::size_t{16} * 200; ++i) {
      const std::size_t bytes = g_random.size();
      sum += bytes;
      i % 16 == kept ? keep_one(1, bytes) : use_one(bytes);
    }
  }
}
void cache() {
  constexpr std::size_t kEntries = 20'000, kRequests = 12;
  const auto size = [] { return 200 + g_random.below(400); };
  for (std::size_t i = 0; i < kEntries; ++i) keep_one(0, size());
  for (std::size_t request = 0; request < kRequests; ++request) {
    for (std::size_t i = 0; i < kEntries * 10; ++i) {
      if (i % 100 == 0) {
        Kept& entry = g_kept[g_random.below(kEntries)];
        std::free(entry.block);
        entry.bytes = size();
        entry.block = index_site(entry.bytes);
      }
      use_one(size());
    }
    free_temporaries();
  }
}
void leak() {
  for (std::size_t sum = 0; sum < kBytes;) {
    for (int i = 0; i < 30; ++i) {
      const std::size_t bytes = 64 + g_random.below(64);
      sum += bytes;
      use_one(bytes);
    }
    keep_one(2, 90);
  }
}
void shares() {
  for (std::size_t sum = 0; sum < kBytes;) {
    const std::size_t bytes = std::size_t{32} << g_random.below(6), which = g_random.below(70);
    sum += bytes;
    which >= 10 ? use_one(bytes) : keep_one(which < 6 ? 0 : which < 9 ? 1 : 2, bytes);
  }
}

void say_truth() {
  constexpr std::uintptr_t kPage = 4096;
  struct Page {
    std::size_t live = 0, blocks = 0;
  };
  std::map<std::uintptr_t, Page> pages;
  const auto visit = [](const Kept& one, auto&& f) {
    const auto begin = reinterpret_cast<std::uintptr_t>(one.block), end = begin + ::malloc_usable_size(one.block);
    for (std::uintptr_t page = begin / kPage; page * kPage < end; ++page)
      f(page, std::min(end, (page + 1) * kPage) - std::max(begin, page * kPage));
  };
  for (const Kept& one : g_kept)
    visit(one, [&](std::uintptr_t page, std::size_t bytes) {
      pages[page].live += bytes;
      ++pages[page].blocks;
    });
  double kept[3] = {};
  for (const Kept& one : g_kept)
    visit(one, [&](std::uintptr_t page, std::size_t) {
      kept[one.site] += static_cast<double>(kPage - pages[page].live) / static_cast<double>(pages[page].blocks);
    });
  for (unsigned i = 0; i < 3; ++i)
    if (kept[i] != 0) std::printf("truth %s %.0f\n", kSites[i], kept[i]);
}

void say_resident() {
  ::malloc_trim(0);
  std::ifstream status("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  status >> all >> resident;
  std::printf("resident %zu\n", resident * 4096);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  std::unique_ptr<freehold::PrivateHeap> heap;
  if (argc > 2) heap = std::make_unique<freehold::PrivateHeap>();
  g_heap = heap.get();
  if (mode == "random") one_in(15, [] { return g_random.size(); });
  if (mode == "sessions") sessions();
  if (mode == "one_size") one_in(15, [] { return std::size_t{48}; });
  if (mode == "cache") cache();
  if (mode == "leak") leak();
  if (mode == "shares") shares();
  free_temporaries();
  if (g_heap == nullptr) say_truth();
  std::thread([] {
    for (std::size_t i = 0;; ++i) std::free(temporary_site(1000 + i % 2000));
  }).detach();
  say_resident();
  std::puts("ready");
  std::fflush(stdout);
  char byte;
  while (::read(STDIN_FILENO, &byte, 1) > 0) continue;
  std::_Exit(0);
}
