// SPDX-License-Identifier: MIT
// Peak of what is resident while sizes change over the same small amount of live memory.
#include <utility>

#include "tests/memory_return/scenarios/probe.hpp"

namespace freehold::test {
namespace {

// 63 sizes, one after the other: 12.5 MiB of each, of which one block per 64 KiB stays.
SCENARIO(peak_one_survivor_per_64_kib) {
  constexpr std::size_t kSizes = 63, kStep = 192, kGroups = 200, kGroupBytes = 64 * kKiB;
  Table<void*> blocks(kGroups * (kGroupBytes / kStep + 1)), survivors(kSizes * kGroups);
  std::size_t stay = 0, live = 0;
  const double cpu = cpu_seconds();
  for (std::size_t k = 1; k <= kSizes; ++k) {
    const std::size_t bytes = k * kStep, per_group = kGroupBytes / bytes, n = kGroups * per_group;
    for (std::size_t i = 0; i < n; ++i) blocks[i] = allocate_written(bytes);
    for (std::size_t i = 0; i < n; ++i)
      if (i % per_group == 0) {
        survivors[stay++] = blocks[i];
        live += bytes;
      } else {
        CApi::deallocate(blocks[i]);
      }
  }
  figure("live_mib", static_cast<double>(live) / static_cast<double>(kMiB));
  figure("peak_mib", peak_mib() - memory_mib("/proc/self/status", "\nRssShmem:"));
  figure("cpu_ms", (cpu_seconds() - cpu) * 1e3);
  for (std::size_t i = 0; i < stay; ++i) CApi::deallocate(survivors[i]);
}

// 256 blocks of 16 KiB to 1 MiB, whose pages are written, and which are replaced at random by others.
SCENARIO(peak_large_blocks_replaced) {
  constexpr std::size_t kStep = 16 * kKiB, kSizes = 64, kRounds = 20'000;
  std::array<unsigned char*, 256> blocks{};
  Random random(11);
  for (std::size_t i = 0; i < kRounds; ++i) {
    unsigned char*& block = blocks[random.below(blocks.size())];
    const std::size_t bytes = kStep * (1 + random.below(kSizes));
    CApi::deallocate(block);
    block = static_cast<unsigned char*>(CApi::allocate(bytes));
    require(block != nullptr, "no memory");
    for (std::size_t at = 0; at < bytes; at += 4096) block[at] = 1;
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  figure("faults", static_cast<double>(usage.ru_minflt));
  figure("peak_mib", peak_mib());
  for (unsigned char* const block : blocks) CApi::deallocate(block);
}

// calloc of `blocks` blocks of 3 MB, 6 MB and so on, of which the program writes `written` pages of a hundred, again and
// again.
SCENARIO(peak_zeroed_blocks) {
  constexpr std::size_t kMost = 8, kStep = 3'000'000, kRounds = 30;
  const std::size_t blocks = std::stoul(word(arguments, 0)), written = std::stoul(word(arguments, 1));
  std::array<unsigned char*, kMost> all{};
  require(blocks <= kMost, "too many");
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (std::size_t k = 0; k < blocks; ++k) {
      const std::size_t bytes = (k + 1) * kStep;
      all[k] = static_cast<unsigned char*>(CApi::allocate_zeroed(bytes));
      require(all[k] != nullptr, "no memory");
      for (std::size_t page = 0; page < bytes / 4096; ++page)
        if (page % 100 < written) {
          require(all[k][page * 4096] == 0, "not zero");
          all[k][page * 4096] = 1;
        }
    }
    for (unsigned char*& block : all) CApi::deallocate(std::exchange(block, nullptr));
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  figure("faults", static_cast<double>(usage.ru_minflt));
  figure("peak_mib", peak_mib());
}

// A size at a time: fills up to 64 MiB live, then frees nine tenths at random. Sizes rise by a quarter from 64 bytes to 30
// KiB and begin again, twice.
SCENARIO(peak_sawtooth_of_sizes) {
  constexpr std::size_t kLive = 64 * kMiB, kSmallest = 64, kLargest = 30 * kKiB;
  struct Block {
    void* address;
    std::size_t bytes;
  };
  Table<Block> blocks(kLive / kSmallest + 1);
  Random random(17);
  std::size_t n = 0, live = 0;
  const double cpu = cpu_seconds();
  for (int round = 0; round < 2; ++round)
    for (std::size_t bytes = kSmallest; bytes <= kLargest; bytes += bytes / 4) {
      while (live + bytes <= kLive) {
        blocks[n++] = {allocate_written(bytes), bytes};
        live += bytes;
      }
      while (live > kLive / 10) {
        const std::size_t i = random.below(n);
        live -= blocks[i].bytes;
        CApi::deallocate(blocks[i].address);
        blocks[i] = blocks[--n];
      }
    }
  figure("live_mib", static_cast<double>(kLive) / static_cast<double>(kMiB));
  figure("peak_mib", peak_mib() - memory_mib("/proc/self/status", "\nRssShmem:"));
  figure("cpu_ms", (cpu_seconds() - cpu) * 1e3);
}

// Blocks of a little more than half of 64 KiB, written whole.
SCENARIO(peak_blocks_of_34000_bytes) {
  constexpr std::size_t kBlocks = 8000, kBytes = 34'000;
  Table<void*> blocks(kBlocks);
  for (void*& block : blocks) block = allocate_written(kBytes);
  figure("requested_mib", static_cast<double>(kBlocks * kBytes) / static_cast<double>(kMiB));
  figure("resident_mib", private_mib());
}

}  // namespace
}  // namespace freehold::test
