// SPDX-License-Identifier: MIT
// Which file an address of this process comes from, read from /proc/self/maps into buffers on the stack: no allocation, no
// lock, async-signal-safe. Threads: any. Cost: one reading of the list of mappings.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace freehold::os {

struct Module {
  char path[512];         // the file; cut if longer
  std::uintptr_t offset;  // the address's offset, as the file's symbols have it: what addr2line and llvm-symbolizer take
};

// False: the address lies in no mapping of a file, or /proc is not there. Needs 3 KiB of stack. errno is unchanged.
[[nodiscard]] bool find_module(const void* address, Module& module) noexcept;

// A part of a library in this process.
struct Mapped {
  std::uintptr_t start, end;
  bool is_writable;
};

// Finds the parts of libraries whose files' names begin so, with their variables that no file has (.bss). Returns how many
// there are, as far as there is room. The limits of find_module() hold.
[[nodiscard]] std::size_t mapped_parts(std::span<const char* const> libraries, std::span<Mapped> found) noexcept;

// Returns whether the C library holds this block of malloc's as the buffer of a standard stream, until the process ends.
[[nodiscard]] bool is_standard_buffer(const void* block) noexcept;

}  // namespace freehold::os
