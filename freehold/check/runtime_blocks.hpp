// SPDX-License-Identifier: MIT
// Blocks that the C library, the C++ runtime and the dynamic linker hold until the process ends: locales, time zones, the
// environment, name services, buffers. No program can free them, so they are no leaks.
//
// A block is such if one of these libraries has allocated it, and a pointer in the library's variables leads to it, directly
// or through other such blocks. So what strdup() gave to the program counts as a leak, also if a variable of the program
// reaches it. A stream that the program has left open is reached by the C library alone, and counts, too.
//
//   add() each live block, then find() while none of them can be freed, then ask holds().
//
// Uses mapped memory, no malloc. One thread. Cost: one reading of /proc/self/maps, one search for each word of such
// data.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "freehold/check/block.hpp"
#include "freehold/os/modules.hpp"
#include "freehold/os/pages.hpp"

namespace freehold::check {

class RuntimeBlocks {
 public:
  // `libraries`: how the names of their files begin.
  explicit RuntimeBlocks(os::Pages& pages, std::span<const char* const> libraries = kLibraries) noexcept;
  ~RuntimeBlocks();
  RuntimeBlocks(const RuntimeBlocks&) = delete;
  RuntimeBlocks& operator=(const RuntimeBlocks&) = delete;

  void add(const Contents& contents, const void* block) noexcept;
  void find() noexcept;
  [[nodiscard]] bool holds(const void* block) const noexcept;

 private:
  struct Block {
    std::uintptr_t start, end;
    bool is_held, is_open_stream;
  };
  [[nodiscard]] bool is_code(const void* address) const noexcept;
  [[nodiscard]] Block* block_at(std::uintptr_t address) const noexcept;
  void look_at(std::uintptr_t start, std::uintptr_t end) noexcept;
  void look_at_copied_variables() noexcept;
  void leave_out_open_streams() noexcept;

  static constexpr const char* kLibraries[] = {"libc.so", "libstdc++.so", "ld-"};
  static constexpr std::size_t kMost = 32768;  // what does not fit counts as leaked
  static constexpr std::size_t kMostMappings = 64;
  static constexpr std::size_t kBytes = kMost * (sizeof(Block) + sizeof(std::uint32_t));

  os::Pages& pages_;
  Block* blocks_;
  std::uint32_t* found_ = nullptr;  // numbers of held blocks whose contents are to be looked at
  std::size_t count_ = 0, found_count_ = 0, mapping_count_ = 0;
  os::Mapped mappings_[kMostMappings];
};

}  // namespace freehold::check
