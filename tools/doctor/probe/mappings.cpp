// SPDX-License-Identifier: MIT
// Counts the bytes that the program maps itself, and those that it gives back to be faulted in again. libc's malloc, its
// threads' stacks and the dynamic linker call the kernel without these names, so that what is counted here is not theirs.
//
// Any thread. Each call of the kernel costs an atomic addition more.
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

void count(std::size_t bytes) noexcept {
  if (!is_on() || t_thread.inside || g_file.header == nullptr) return;
  std::atomic_ref(g_file.header->mapped_bytes).fetch_add(bytes, std::memory_order_relaxed);  // relaxed: a sum
}

void* pointer_of(long result) noexcept { return reinterpret_cast<void*>(result); }  // NOLINT: the kernel's answer

}  // namespace

FREEHOLD_EXPORT void* mmap(void* address, std::size_t bytes, int access, int flags, int file, off_t offset) noexcept {
  void* const mapped = pointer_of(::syscall(SYS_mmap, address, bytes, access, flags, file, offset));
  if (mapped != MAP_FAILED) count(bytes);
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
  void* const mapped = pointer_of(::syscall(SYS_mremap, address, bytes, new_bytes, flags, to));
  if (mapped != MAP_FAILED && new_bytes > bytes) count(new_bytes - bytes);
  return mapped;
}

FREEHOLD_EXPORT int madvise(void* address, std::size_t bytes, int advice) noexcept {
  if (advice == MADV_DONTNEED) count(bytes);
  return static_cast<int>(::syscall(SYS_madvise, address, bytes, advice));
}
