// SPDX-License-Identifier: MIT
// Finds where in the memory of a running process its allocators' code lies, and that of the calls by which memory is taken
// from the kernel: told from its memory map and the symbols of its files. Of glibc's malloc, whose inner functions have no
// names in a stripped library, it is what lies between those that have: one source file's code lies together.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/live/memory_map.hpp"

namespace freehold::doctor {

enum class CodeKind : std::uint8_t {
  kOther,
  kMalloc,        // malloc, free and their kin
  kOwnAllocator,  // an allocator of the program's or its runtime's
  kMemoryCall,    // mmap, munmap, madvise, brk: memory from the kernel and back
  kMallocLock,    // the wait for a lock that the C library has for itself: nearly always malloc's
  kLock,          // the C library's calls that take and release a program's locks
  kTeam,          // OpenMP's runtime, in a process without OpenMP's locks: its threads spin there until they have work
  kWait,          // the C library's calls that no single holder answers: readers' locks, semaphores, conditions, barriers
};
[[nodiscard]] std::string_view name_of(CodeKind kind) noexcept;

class AllocatorCode {
 public:
  // Files are looked at below `root`, which is /proc/PID/root for other namespaces.
  AllocatorCode(const std::vector<live::CodeMapping>& mappings, const std::string& root);

  [[nodiscard]] CodeKind kind_of(std::uint64_t address) const noexcept;
  // Returns the file that malloc comes from; empty: not known.
  [[nodiscard]] const std::string& malloc_file() const noexcept { return malloc_file_; }

 private:
  struct Range {
    std::uint64_t begin = 0, end = 0;
    CodeKind kind = CodeKind::kOther;
  };
  void add_file(const std::string& file, const std::string& path, const std::vector<live::CodeMapping>& mappings);
  void add(const std::vector<live::CodeMapping>& mappings, const std::string& file, std::uint64_t offset,
           std::uint64_t bytes, CodeKind kind);

  bool has_team_locks_ = false;
  std::vector<Range> ranges_;  // sorted ascending; the first that holds an address is meant
  std::string malloc_file_;
};

}  // namespace freehold::doctor
