// SPDX-License-Identifier: MIT
// Rows of `script/bench service` that count one thing: pages that a fork's child makes its own by freeing, and cache lines
// that two threads share after blocks went from one to the other.
#include <sys/wait.h>

#include <algorithm>
#include <random>

#include "bench/macro/service.hpp"

namespace freehold::bench {
namespace {

// A line of /proc/self/smaps_rollup in MiB, read without malloc.
double own_memory_mib(const char* field) {
  char text[4096];
  const int file = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
  const ssize_t n = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (n <= 0) give_up("/proc/self/smaps_rollup cannot be read");
  close(file);
  text[n] = 0;
  const char* const line = std::strstr(text, field);
  return line == nullptr ? 0 : std::atof(line + std::strlen(field)) / 1024;
}

// A snapshot: the child reads all objects and frees one in three at random. Figure: its private dirty memory beyond that of
// a child which only reads.
Figures snapshot(std::size_t bytes, double scale) {
  const auto count = scaled(scale, 1'000'000);
  SharedTable<Block> blocks(count);
  for (Block& block : blocks) block = allocate(bytes);
  SharedTable<double> dirty(2);
  for (const bool frees : {false, true}) {
    const pid_t child = fork();
    if (child == 0) {
      Random random(5);
      std::uint64_t sum = 0;
      for (Block& block : blocks) {
        for (std::size_t i = 0; i < bytes; i += 64) sum += static_cast<unsigned char>(block.start[i]);
        if (frees && random.below(3) == 0) std::free(block.start);
      }
      dirty[frees ? 1 : 0] = own_memory_mib("Private_Dirty:") + (sum == 0 ? 1 : 0);
      _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) give_up("the child failed");
  }
  const double mib = dirty[1] - dirty[0];
  return {{{"child_dirty_mib", mib}, {"child_dirty_percent", mib * (100 << 20) / static_cast<double>(count * bytes)}}};
}

// Thread A allocates blocks and hands a random half to B, which frees them and allocates as many. Figures: percent of B's
// blocks with a line that a live block of A is on, then and after B has replaced all of its blocks five times.
Figures lines(std::size_t bytes, double scale) {
  constexpr unsigned kPasses = 5;
  const auto count = scaled(scale, 200'000);
  SharedTable<char*> mine(count), theirs(count);
  const auto allocate_all = [bytes](char** from, char** to) {
    for (; from != to; ++from) *from = static_cast<char*>(must(std::malloc(bytes)));
  };
  allocate_all(mine.begin(), mine.end());
  std::shuffle(mine.begin(), mine.end(), std::minstd_rand(1));
  const std::size_t half = count / 2;
  char** const handed = mine.begin() + half;
  SharedTable<std::uintptr_t> lines_of_a(2 * half);
  for (std::size_t i = 0; i < 2 * half; ++i)
    lines_of_a[i] = (reinterpret_cast<std::uintptr_t>(mine[i / 2]) + i % 2 * (bytes - 1)) / 64;
  std::sort(lines_of_a.begin(), lines_of_a.end());
  const auto shared_percent = [&] {
    std::size_t shared = 0;
    for (std::size_t i = 0; i < half; ++i) {
      const auto from = reinterpret_cast<std::uintptr_t>(theirs[i]);
      if (std::binary_search(lines_of_a.begin(), lines_of_a.end(), from / 64) ||
          std::binary_search(lines_of_a.begin(), lines_of_a.end(), (from + bytes - 1) / 64))
        ++shared;
    }
    return 100 * static_cast<double>(shared) / static_cast<double>(half);
  };
  double at_first = 0, at_last = 0;
  std::thread([&] {
    std::for_each_n(handed, half, [](char* block) { std::free(block); });
    allocate_all(theirs.begin(), theirs.begin() + half);
    at_first = shared_percent();
    for (unsigned pass = 0; pass < kPasses; ++pass) {
      std::shuffle(theirs.begin(), theirs.begin() + half, std::minstd_rand(pass + 2));
      std::for_each_n(theirs.begin(), half, [](char* block) { std::free(block); });
      allocate_all(theirs.begin(), theirs.begin() + half);
    }
    at_last = shared_percent();
  }).join();
  return {{{"lines_at_first", at_first}, {"lines_at_last", at_last}}};
}

constexpr ServiceRow kRows[] = {
    {"snapshot_500", "a fork's child reads a million objects of 500 B and frees a third",
     [](double s) { return snapshot(500, s); }},
    {"snapshot_2000", "the same, of 2,000 B", [](double s) { return snapshot(2000, s); }},
    {"lines_16", "percent of a thread's blocks of 16 B on a line of another's", [](double s) { return lines(16, s); }},
    {"lines_32", "the same, of 32 B", [](double s) { return lines(32, s); }},
};

}  // namespace

ServiceRows fork_and_line_rows() { return kRows; }

}  // namespace freehold::bench
