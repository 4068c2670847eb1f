// SPDX-License-Identifier: MIT
// Counts the bytes that the program maps itself, and those that it gives back to be faulted in again, and the time that
// these calls and munmap() take: threads wait for each other in them, and few pages need be touched for that. libc's malloc,
// its threads' stacks and the dynamic linker call the kernel without these names, so that what is counted here is not
// theirs.
//
// Any thread. Each call of the kernel costs two atomic additions and two readings of the clock more.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdint>

#include "tools/doctor/probe/recorder.hpp"
#include "tools/doctor/probe/trace_file.hpp"

#define FREEHOLD_EXPORT extern "C" __attribute__((visibility("default")))

namespace {
using namespace freehold::doctor::probe;

void count(std::size_t bytes, std::uint64_t began_at) noexcept {
  if (!is_on() || t_thread.inside || g_file.header == nullptr) return;
  std::atomic_ref(g_file.header->mapped_bytes).fetch_add(bytes, std::memory_order_relaxed);                // relaxed: a sum
  std::atomic_ref(g_file.header->mapping_ticks).fetch_add(ticks() - began_at, std::memory_order_relaxed);  // the same
}

void* pointer_of(long result) noexcept { return reinterpret_cast<void*>(result); }  // NOLINT: the kernel's answer

}  // namespace

FREEHOLD_EXPORT void* mmap(void* address, std::size_t bytes, int access, int flags, int file, off_t offset) noexcept {
  const std::uint64_t began_at = ticks();
  void* const mapped = pointer_of(::syscall(SYS_mmap, address, bytes, access, flags, file, offset));
  if (mapped != MAP_FAILED) count(bytes, began_at);
  return mapped;
}
FREEHOLD_EXPORT void* mmap64(void* address, std::size_t bytes, int access, int flags, int file, off64_t offset) noexcept {
  return mmap(address, bytes, access, flags, file, offset);
}

FREEHOLD_EXPORT void* mremap(void* address, std::size_t bytes, std::size_t new_bytes, int flags, ...) noexcept {
  va_list more;
  va_start(more, flags);
  void* const to = (flags & MREMAP_FIXED) != 0 ? va_arg(more, void*) : nullptr;
  va_end(more);
  const std::uint64_t began_at = ticks();
  void* const mapped = pointer_of(::syscall(SYS_mremap, address, bytes, new_bytes, flags, to));
  if (mapped != MAP_FAILED) count(new_bytes > bytes ? new_bytes - bytes : 0, began_at);
  return mapped;
}

FREEHOLD_EXPORT int munmap(void* address, std::size_t bytes) noexcept {
  const std::uint64_t began_at = ticks();
  const long result = ::syscall(SYS_munmap, address, bytes);
  count(0, began_at);
  return static_cast<int>(result);
}

FREEHOLD_EXPORT int madvise(void* address, std::size_t bytes, int advice) noexcept {
  const std::uint64_t began_at = ticks();
  const long result = ::syscall(SYS_madvise, address, bytes, advice);
  count(result == 0 && advice == MADV_DONTNEED ? bytes : 0, began_at);
  return static_cast<int>(result);
}
