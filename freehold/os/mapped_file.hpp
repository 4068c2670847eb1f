// SPDX-License-Identifier: MIT
// Files in memory: everything that Freehold maps from a descriptor. (Memory without a file: os/pages.hpp.)
// Sizes and offsets are in bytes; offsets are multiples of page_bytes(). Errors: null or false, errno set by the system.
// Threads: any. Cost: a system call each.
#pragma once
#include <sys/types.h>

#include <cstddef>

#include "freehold/os/system_call.hpp"

namespace freehold::os {

struct MappedFile {
  // The first `bytes` of the file, for reading. End: unmap().
  [[nodiscard]] static const void* map_for_reading(int fd, std::size_t bytes) noexcept {
    return or_null(kernel::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0));
  }
  // `bytes` of the file from `offset`, for reading and writing; changes are shared with all others that map them. End:
  // unmap().
  [[nodiscard]] static void* map_shared(int fd, std::size_t bytes, off_t offset = 0) noexcept {
    return or_null(kernel::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset));
  }
  static void unmap(const void* mapping, std::size_t bytes) noexcept { kernel::munmap(const_cast<void*>(mapping), bytes); }

  // The same as map_shared(), with a page before and after it that cannot be accessed; left out of core dumps. End:
  // unmap_guarded() with the same `bytes`.
  [[nodiscard]] static void* map_shared_guarded(int fd, std::size_t bytes) noexcept;
  static void unmap_guarded(void* mapping, std::size_t bytes) noexcept;

  // Makes every access of the pages a fault (SIGSEGV).
  static bool forbid(void* pages, std::size_t bytes) noexcept { return kernel::mprotect(pages, bytes, PROT_NONE) == 0; }
  // Keeps a mapping out of processes that fork() makes from now on.
  static bool keep_from_children(void* mapping, std::size_t bytes) noexcept {
    return kernel::madvise(mapping, bytes, MADV_DONTFORK) == 0;
  }
  // `bytes` without a file, zero, that are zero again in every process that fork() makes. End: unmap().
  [[nodiscard]] static void* map_zero_in_children(std::size_t bytes) noexcept;

 private:
  static void* or_null(void* mapping) noexcept { return mapping == MAP_FAILED ? nullptr : mapping; }
};

}  // namespace freehold::os
