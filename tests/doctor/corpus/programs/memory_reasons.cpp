// SPDX-License-Identifier: MIT
// Programs that each hold 15 to 70 MiB for one known reason, for a third of a second and longer; the argument says which.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <latch>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

namespace {

using rebuilt::block, rebuilt::Block, rebuilt::idle;
constexpr std::size_t kMebibyte = std::size_t{1} << 20, kBytes = 40 * kMebibyte;

void pause() { std::this_thread::sleep_for(std::chrono::microseconds(800)); }

char* map(int flags, int file = -1) {
  void* const mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, flags, file, 0);
  if (mapped == MAP_FAILED) std::abort();
  std::memset(mapped, 1, kBytes);
  return static_cast<char*>(mapped);
}

// A file without a name.
int file_in(const char* folder) {
  char name[4096];
  std::snprintf(name, sizeof name, "%s/freehold-held-XXXXXX", folder);
  const int file = ::mkstemp(name);
  if (file < 0) std::abort();
  ::unlink(name);
  return file;
}

// `use` in many threads, each of which lives on until all have ended it.
template <class Use>
void in_threads_that_stay(int count, Use use) {
  std::latch all(count);
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&] {
      use();
      all.arrive_and_wait();
      idle(500);
    });
}

// Each request forgets a block, from the beginning to the end, beside others that are freed.
void leak() {
  for (int request = 0; request < 400; ++request) {
    for (int i = 0; i < 200; ++i) static_cast<void>(block(600).release());
    const Block answer = block(9000);
    pause();
  }
}

// One function makes all responses; each tenth of them is forgotten, the others are freed when a few more have come.
void leak_some() {
  std::deque<Block> sent;
  for (int request = 0; request < 80'000; ++request) {
    sent.push_back(block(2500));
    if (request % 10 == 0) static_cast<void>(sent.back().release());
    if (sent.size() > 50) sent.pop_front();
    if (request % 200 == 0) pause();
  }
}

// A table grows to the end of the run, and is freed then.
void growth_freed() {
  std::vector<Block> table;
  for (int step = 0; step < 400; ++step) {
    for (int i = 0; i < 200; ++i) table.push_back(block(600));
    pause();
  }
}

// A cache is filled, has reached its limit then, and is never freed, not even at the end: growth that is no leak.
void cache() {
  auto& cache = *new std::vector<Block>;
  for (int i = 0; i < 60'000; ++i) cache.push_back(block(700));
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 200; ++i) cache[static_cast<std::size_t>(round * 200 + i)] = block(700);
    idle(3);
  }
}

// A vector was large once; a few elements are left of it, and all of its capacity.
void capacity() {
  std::vector<long> values(6 * kMebibyte, 1);
  values.resize(100);
  idle(300);
  rebuilt::keep(values);
}

// A million blocks of four bytes, for each of which glibc takes 32.
void tiny_blocks() {
  std::vector<Block> blocks(1'000'000);
  for (Block& one : blocks) one = block(4);
  idle(500);
}

// Many threads free seven blocks of each small size, which is what glibc keeps for each of them.
void thread_caches() {
  in_threads_that_stay(160, [] {
    std::vector<Block> blocks;
    blocks.reserve(7 * 64);
    for (std::size_t bytes = 24; bytes <= 1032; bytes += 16)
      for (int times = 0; times < 7; ++times) blocks.push_back(block(bytes));
  });
}

// A spike was freed long ago, except for the last block, which keeps glibc from giving the heap back.
void spike() {
  Block last;
  {
    std::vector<Block> blocks;
    for (int i = 0; i < 60'000; ++i) blocks.push_back(block(700));
    last = block(700);
  }
  idle(600);
}

// One block of twelve lives on, spread over all pages: none of them can be given back.
void survivors() {
  std::vector<Block> kept;
  {
    std::vector<Block> blocks;
    for (int i = 0; i < 160'000; ++i) (i % 12 == 0 ? kept : blocks).push_back(block(300));
  }
  idle(600);
}

void own_mapping() {
  map(MAP_PRIVATE | MAP_ANONYMOUS);
  const Block some = block(2 * kMebibyte);
  idle(300);
}

// Each of many threads once used much of its stack.
void stacks() {
  in_threads_that_stay(32, [] {
    char much[kMebibyte];
    std::memset(much, 1, sizeof much);
    rebuilt::keep(much);
  });
}

// A mapped file, all of whose pages were written.
void mapped_file() {
  const char* const folder = std::getenv("TMPDIR");
  const int file = file_in(folder != nullptr ? folder : "/var/tmp");
  if (::ftruncate(file, kBytes) != 0) std::abort();
  map(MAP_SHARED, file);
  idle(300);
}

// A file in tmpfs, which is memory though no mapping shows it.
void tmpfs() {
  const int file = file_in("/dev/shm");
  const Block buffer = block(kMebibyte);
  for (int i = 0; i < 40; ++i)
    if (::write(file, buffer.get(), kMebibyte) != static_cast<ssize_t>(kMebibyte)) std::abort();
  idle(300);
}

// As between processes.
void shared_mapping() {
  map(MAP_SHARED | MAP_ANONYMOUS);
  idle(300);
}

// A sparse mapping of which one page in each 2 MiB is read: the kernel has one page of zeros for all, but a table for each.
void page_tables() {
  constexpr std::size_t kStep = 2 * kMebibyte, kPages = 8192;
  void* const mapped =
      ::mmap(nullptr, kStep * kPages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) std::abort();
  ::madvise(mapped, kStep * kPages, MADV_NOHUGEPAGE);
  for (std::size_t i = 0; i < kPages; ++i) {
    const char read = static_cast<volatile char*>(mapped)[i * kStep];  // keep() alone takes an address, and reads nothing
    rebuilt::keep(read);
  }
  idle(500);
}

// Next to nothing is held.
void little() {
  const Block some = block(100'000);
  idle(300);
}

struct Reason {
  const char* name;
  void (*hold)();
};
const Reason kReasons[] = {{"leak", leak},
                           {"leak_some", leak_some},
                           {"growth_freed", growth_freed},
                           {"cache", cache},
                           {"capacity", capacity},
                           {"tiny_blocks", tiny_blocks},
                           {"thread_caches", thread_caches},
                           {"spike", spike},
                           {"survivors", survivors},
                           {"own_mapping", own_mapping},
                           {"stacks", stacks},
                           {"mapped_file", mapped_file},
                           {"tmpfs", tmpfs},
                           {"shared_mapping", shared_mapping},
                           {"page_tables", page_tables},
                           {"little", little}};

}  // namespace

int main(int argc, char** argv) {
  for (const Reason& reason : kReasons)
    if (argc == 2 && std::strcmp(reason.name, argv[1]) == 0) return reason.hold(), 0;
  return 2;
}
