// SPDX-License-Identifier: MIT
#include "freehold/os/mapped_file.hpp"

#include "freehold/base/bits.hpp"
#include "freehold/base/keep_errno.hpp"
#include "freehold/os/pages.hpp"

namespace freehold::os {
namespace {

// Adds the page before and the page after.
std::size_t guarded_bytes(std::size_t bytes) noexcept { return base::align_up(bytes, page_bytes()) + 2 * page_bytes(); }

void unmap_keeping_errno(void* mapping, std::size_t bytes) noexcept {
  const base::KeepErrno keep;
  kernel::munmap(mapping, bytes);
}

}  // namespace

void* MappedFile::map_shared_guarded(int fd, std::size_t bytes) noexcept {
  const std::size_t all = guarded_bytes(bytes);
  void* const room = kernel::mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  void* const place = static_cast<std::byte*>(room) + page_bytes();
  void* const data = or_null(kernel::mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0));
  if (data == nullptr)
    unmap_keeping_errno(room, all);
  else
    kernel::madvise(data, bytes, MADV_DONTDUMP);  // reading it for a core dump would make all its pages exist
  return data;
}

void MappedFile::unmap_guarded(void* mapping, std::size_t bytes) noexcept {
  kernel::munmap(static_cast<std::byte*>(mapping) - page_bytes(), guarded_bytes(bytes));
}

void* MappedFile::map_zero_in_children(std::size_t bytes) noexcept {
  void* const mapping = or_null(kernel::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (mapping == nullptr || kernel::madvise(mapping, bytes, MADV_WIPEONFORK) == 0) return mapping;
  unmap_keeping_errno(mapping, bytes);
  return nullptr;
}

}  // namespace freehold::os
