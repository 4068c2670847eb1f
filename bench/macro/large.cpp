// SPDX-License-Identifier: MIT
// Large blocks: each thread replaces random members of a small set and touches a byte of the first and last page of each,
// or all of it. And buffers that grow side by side through realloc, as those of an interpreter do.
#include <cstring>

#include "bench/macro/rows.hpp"

namespace freehold::bench {
namespace {

constexpr std::size_t kHeld = 16;

struct Held {
  char* memory = nullptr;
  std::size_t bytes = 0;
};

enum class Touch { kEnds, kWhole };

// Blocks of 2^kLow to 2^kHigh bytes.
template <unsigned kThreads, unsigned kLow, unsigned kHigh, Touch kTouch>
Outcome large(double scale) {
  const auto replacements = scaled(scale, (kTouch == Touch::kWhole ? 16'000 : kHigh < 22 ? 400'000 : 40'000) / kThreads);
  std::vector<std::uint64_t> sums(kThreads);
  const double seconds = run_threads(kThreads, [&](unsigned t) {
    Random random(t + 1);
    Held held[kHeld];
    auto drop = [&](Held& block) {
      if (block.memory == nullptr) return;
      if (block.memory[0] != 1 || block.memory[block.bytes - 1] != 2) give_up("a block was overwritten");
      std::free(block.memory);
      ++sums[t];
    };
    for (std::uint64_t i = 0; i < replacements; ++i) {
      Held& block = held[random.below(kHeld)];
      drop(block);
      block.bytes = random.log_size(kLow, kHigh);
      block.memory = static_cast<char*>(must(std::malloc(block.bytes)));
      if (kTouch == Touch::kWhole) std::memset(block.memory, 3, block.bytes);
      block.memory[0] = 1;
      block.memory[block.bytes - 1] = 2;
    }
    for (auto& block : held) drop(block);
  });
  const auto total = sum_of(sums);
  if (total != kThreads * replacements) give_up("a block was lost");
  return {total, seconds, total};
}

// A set of very large blocks whose members are replaced at random; a byte of each page is written, as the field's
// malloc-large does. A malloc that gives each mapping back at its free pays for every page again.
Outcome mappings(double scale) {
  constexpr std::size_t kMiB = 1024 * 1024, kPage = 4096;
  constexpr std::size_t kBlocks = 16;
  const auto replacements = scaled(scale, 1'000);
  Random random(1);
  char* blocks[kBlocks] = {};
  std::uint64_t sum = 0;
  const auto start = Clock::now();
  for (std::uint64_t i = 0; i < replacements; ++i) {
    char*& block = blocks[random.below(kBlocks)];
    std::free(block);
    const std::size_t bytes = 5 * kMiB + random.below(20 * kMiB);
    block = static_cast<char*>(must(std::malloc(bytes)));
    for (std::size_t at = 0; at < bytes; at += kPage) block[at] = 1;
    sum += bytes;
  }
  for (char* block : blocks) std::free(block);
  return {replacements, std::chrono::duration<double>(Clock::now() - start).count(), sum};
}

// Many buffers grow in turn, by an eighth, from 64 bytes to 512 KiB; the new part is written. Then they are freed. An
// operation is one realloc.
template <unsigned kThreads>
Outcome grow(double scale) {
  constexpr std::size_t kBuffers = 64;
  constexpr std::size_t kMost = 512 * 1024;
  const auto rounds = scaled(scale, 12 / kThreads);
  std::vector<std::uint64_t> calls(kThreads);
  const double seconds = run_threads(kThreads, [&](unsigned t) {
    for (std::uint64_t round = 0; round < rounds; ++round) {
      char* buffers[kBuffers] = {};
      std::size_t old_bytes = 0;
      for (std::size_t bytes = 64; bytes <= kMost; bytes += bytes / 8) {
        for (std::size_t i = 0; i < kBuffers; ++i) {
          buffers[i] = static_cast<char*>(must(std::realloc(buffers[i], bytes)));
          std::memset(buffers[i] + old_bytes, static_cast<int>(i), bytes - old_bytes);
          ++calls[t];
        }
        old_bytes = bytes;
      }
      for (std::size_t i = 0; i < kBuffers; ++i) {
        if (buffers[i][0] != static_cast<char>(i) || buffers[i][old_bytes / 2] != static_cast<char>(i))
          give_up("a buffer was not copied");
        std::free(buffers[i]);
      }
    }
  });
  const auto total = sum_of(calls);
  return {total, seconds, total};
}

constexpr Row kRows[] = {
    {"large_1t", "1 thread, random 32 KiB-4 MiB, 16 held, ends touched", large<1, 15, 22, Touch::kEnds>},
    {"large_4t", "4 threads, the same", large<4, 15, 22, Touch::kEnds>},
    {"buffers_1t", "1 thread, random 64 KiB-1 MiB, 16 held, ends touched", large<1, 16, 20, Touch::kEnds>},
    {"buffers_4t", "4 threads, the same", large<4, 16, 20, Touch::kEnds>},
    {"buffers_whole_1t", "1 thread, random 64 KiB-1 MiB, 16 held, written whole", large<1, 16, 20, Touch::kWhole>},
    {"buffers_whole_4t", "4 threads, the same", large<4, 16, 20, Touch::kWhole>},
    {"mappings_1t", "1 thread, random 5-25 MiB, 16 held, a byte of each page written", mappings},
    {"grow_1t", "1 thread, 64 buffers grow in turn through realloc, to 512 KiB", grow<1>},
    {"grow_4t", "4 threads, the same", grow<4>},
};

}  // namespace

Rows large_rows() { return kRows; }

}  // namespace freehold::bench
