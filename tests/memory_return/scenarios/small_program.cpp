// SPDX-License-Identifier: MIT
// Prints the memory that a small program pins under mlockall and the memory that it is charged under strict overcommit, and
// whether trimmed memory stays away.
#include <sys/mman.h>

#include "tests/memory_return/scenarios/probe.hpp"

namespace freehold::test {
namespace {

void use_little() {
  std::array<void*, 1000> blocks;
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = allocate_written(16 + i);
  for (void* block : blocks) CApi::deallocate(block);
}

SCENARIO(small_program_locked) {
  if (::mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return figure("not_allowed", 1);
  use_little();
  CApi::deallocate(allocate_written(kMiB));
  const double little = memory_mib("/proc/self/status", "\nVmRSS:");
  Table<void*> blocks(60'000);
  for (void*& block : blocks) block = allocate_written(1000);
  const double much = memory_mib("/proc/self/status", "\nVmRSS:");
  for (void* block : blocks) CApi::deallocate(block);
  const double freed = memory_mib("/proc/self/status", "\nVmRSS:");
  figure("resident_mib", little);
  figure("spike_mib", much - little);
  figure("left_of_the_spike_mib", freed - little);
}

SCENARIO(small_program_accounted) {
  use_little();
  figure("private_writable_mib", private_writable_mib());
}

// Eight threads hold some blocks of each size.
SCENARIO(small_program_many_sizes) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([] {
      std::array<void*, 128> blocks;
      for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = allocate_written(16 + 16 * i);
      ::usleep(100'000);
      for (void* block : blocks) CApi::deallocate(block);
    });
  for (std::thread& thread : threads) thread.join();
  figure("peak_mib", memory_mib("/proc/self/status", "\nVmHWM:"));
}

// Seven of eight blocks go; then malloc_trim; then nothing for SECONDS.
SCENARIO(small_program_trimmed_stays_away) {
  constexpr std::size_t kBlocks = 600'000;
  Table<void*> blocks(kBlocks);
  Random random(9);
  for (void*& block : blocks) block = allocate_written(16 + random.below(1000));
  for (std::size_t i = 0; i < kBlocks; ++i)
    if (i % 512 >= 8) CApi::deallocate(blocks[i]);
  CApi::trim();
  const double trimmed = private_mib();
  const double huge = memory_mib("/proc/self/smaps_rollup", "\nAnonHugePages:");
  ::usleep(static_cast<useconds_t>(number(arguments, 0) * 1'000'000));
  const double later = private_mib();
  figure("trimmed_mib", trimmed);
  figure("huge_mib", huge);
  figure("later_mib", later);
  figure("huge_later_mib", memory_mib("/proc/self/smaps_rollup", "\nAnonHugePages:"));
}

}  // namespace
}  // namespace freehold::test
