// SPDX-License-Identifier: MIT
// Divides a program's resident pages among their owners: its live data, what malloc holds beside that, and what is not
// malloc's at all.
//
//   Invariant: the parts add up to what was there, and none is negative.
//
// Mappings are told apart by their names and places, and by the addresses of the blocks that the probe saw; within malloc's
// mappings live data is as much as was recorded, and not more than is there.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tools/doctor/facts/memory_live.hpp"
#include "tools/doctor/facts/memory_snapshot.hpp"

namespace freehold::doctor {

enum class MemoryPart : std::uint8_t {
  kLive,        // blocks that the program has not freed, as many bytes as it asked for
  kRounding,    // headers of live blocks, and steps between sizes
  kArenas,      // free memory that several arenas hold and one would not
  kCaches,      // free blocks in caches of threads
  kFreePages,   // whole pages that are free, and that malloc could give back
  kHoles,       // free memory between live blocks
  kMappings,    // mappings that the program made
  kStacks,      // stacks of threads
  kFiles,       // code, variables, mapped files
  kShared,      // files in tmpfs, shared mappings
  kPageTables,  // the kernel's page tables for all of this
};
inline constexpr std::size_t kMemoryParts = 11;
[[nodiscard]] std::string_view name_of(MemoryPart part) noexcept;  // "free-pages"
// Says whether malloc holds it beside live data.
[[nodiscard]] bool is_of_malloc(MemoryPart part) noexcept;

struct MemoryParts {
  std::array<double, kMemoryParts> bytes{};
  double free_bytes = 0;       // bytes free in malloc that no experiment has divided yet; 0 once they are divided
  double untouched_bytes = 0;  // bytes of live blocks with a mapping each that were never used: not resident, in no sum

  [[nodiscard]] double operator[](MemoryPart part) const { return bytes[static_cast<std::size_t>(part)]; }
  [[nodiscard]] double& operator[](MemoryPart part) { return bytes[static_cast<std::size_t>(part)]; }
  [[nodiscard]] double sum() const;
  // Adds up all that malloc holds beside live data.
  [[nodiscard]] double overhead() const;
  void add(const MemoryParts& other, double times = 1);
};

// Divides the pages of one process. `is_glibc`: its malloc is glibc's. `live`: at the same moment; null: not recorded.
[[nodiscard]] MemoryParts parts_of(const ProcessMemory& process, const LiveData* live, const SeenBlocks* seen,
                                   bool is_glibc);
// Adds up the processes.
[[nodiscard]] MemoryParts parts_of(const MemorySnapshot& snapshot, std::span<const LiveData> live,
                                   std::span<const SeenBlocks> seen, bool is_glibc);

// The bytes that the program held less in each of three trials.
struct FreeSaved {
  double by_one_arena = 0;
  double without_caches = 0;
  double by_trimming = 0;
};
// Divides the free bytes: what one arena saves are arenas, of the rest what is saved without caches, of the rest what
// trimming gives back; what remains are holes.
[[nodiscard]] MemoryParts divided(MemoryParts parts, const FreeSaved& saved);

}  // namespace freehold::doctor
