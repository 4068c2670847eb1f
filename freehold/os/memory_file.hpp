// SPDX-License-Identifier: MIT
// Files that exist in memory only (memfd): processes share them by descriptors, and no name can be left behind or guessed.
// Threads: any. Cost: a few system calls each. Errors: errno set by the system.
#pragma once
#include <cstdint>

namespace freehold::os {

// A memory file of `bytes` zero bytes, for its user alone (mode 0600), closed on exec. Its size is sealed: no process that
// has a descriptor can truncate it and make another's access fail. `name` shows in /proc/PID/maps. Errors: -1.
[[nodiscard]] int create_memory_file(const char* name, std::uint64_t bytes) noexcept;

// Returns whether the descriptor is a memory file whose size is sealed, as create_memory_file() makes it.
[[nodiscard]] bool is_sealed_memory_file(int fd) noexcept;

// Gives whole pages within the range back to the system; they read as zero afterwards. Advice only.
void punch_hole(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept;

}  // namespace freehold::os
