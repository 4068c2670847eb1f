#include "freehold/os/pages.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "freehold/base/bits.hpp"

namespace freehold::os {
namespace {

constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

#ifndef MREMAP_DONTUNMAP
constexpr int MREMAP_DONTUNMAP = 4;
#endif

}  // namespace

void* Pages::reserve(std::size_t bytes, std::size_t alignment) noexcept {
  // Over-reserve and trim; address space is what this asks for, so the excess lives for two calls only.
  const std::size_t asked = bytes + alignment;
  if (asked < bytes) return nullptr;
  void* raw = ::mmap(nullptr, asked, PROT_NONE, kPrivate, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const auto start = reinterpret_cast<std::uintptr_t>(raw);
  const std::uintptr_t aligned = base::align_up(start, alignment);
  if (aligned != start) ::munmap(raw, aligned - start);
  const std::size_t tail = start + asked - (aligned + bytes);
  if (tail != 0) ::munmap(reinterpret_cast<void*>(aligned + bytes), tail);
  return reinterpret_cast<void*>(aligned);
}

bool Pages::reserve_at(void* address, std::size_t bytes) noexcept {
  void* got = ::mmap(address, bytes, PROT_NONE, kPrivate | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == address) return true;
  if (got != MAP_FAILED) ::munmap(got, bytes);  // a kernel before 4.17 takes the address as a hint only
  return false;
}

bool Pages::commit(void* address, std::size_t bytes) noexcept {
  return ::mprotect(address, bytes, PROT_READ | PROT_WRITE) == 0;
}

bool Pages::purge(void* address, std::size_t bytes) noexcept { return ::madvise(address, bytes, MADV_DONTNEED) == 0; }

void* Pages::map(std::size_t bytes) noexcept {
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kPrivate, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

void Pages::advise_huge(void* address, std::size_t bytes) noexcept { ::madvise(address, bytes, MADV_HUGEPAGE); }

// Straight onto `to` (MREMAP_FIXED) the kernel unmaps `to` before it looks at `from`; up to 6.16 it then refuses a range
// that lies in several mappings, as a block does that was moved before and has grown since. `to` would be a hole, open to
// another thread's mmap. So each piece goes to a place of the kernel's choice first, where a refusal harms nothing, and
// from there, one mapping now, to its end: 9 us for 256 KiB where the copy takes 115, most of it page faults.
// DONTUNMAP keeps the old range ours.
bool Pages::move(void* from, void* to, std::size_t bytes) noexcept {
  constexpr std::size_t kCopyBytes = 64 * 1024;  // smaller pieces are not worth the search for their mappings' ends
  const std::size_t page = page_bytes();
  for (std::size_t done = 0, piece = bytes; done < bytes; done += piece, piece = bytes - done) {
    char* const source = static_cast<char*>(from) + done;
    char* const target = static_cast<char*>(to) + done;
    void* between = ::mremap(source, piece, piece, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr);
    while (between == MAP_FAILED && errno == EFAULT && piece > kCopyBytes) {
      piece = base::align_up(piece / 2, page);
      between = ::mremap(source, piece, piece, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr);
    }
    if (between == MAP_FAILED) {
      if (done == 0 && errno != EFAULT) return false;
      std::memcpy(target, source, piece);
    } else if (::mremap(between, piece, piece, MREMAP_MAYMOVE | MREMAP_FIXED, target) == MAP_FAILED) {
      // The kernel is out of memory for its own records, and may have unmapped the target before it noticed.
      [[maybe_unused]] const bool again =
          ::mmap(target, piece, PROT_READ | PROT_WRITE, kPrivate | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED;
      std::memcpy(target, between, piece);
      ::munmap(between, piece);
    }
  }
  return true;
}

void Pages::release(void* address, std::size_t bytes) noexcept { ::munmap(address, bytes); }

std::size_t page_bytes() noexcept {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));  // no system call: glibc knows it
}

std::size_t address_space_limit() noexcept {
  std::size_t limit = SIZE_MAX;
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit r{};
    if (::getrlimit(resource, &r) == 0 && r.rlim_cur != RLIM_INFINITY) limit = std::min<std::size_t>(limit, r.rlim_cur);
  }
  return limit;
}

std::size_t physical_memory_bytes() noexcept {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  return pages > 0 ? static_cast<std::size_t>(pages) * page_bytes() : std::size_t{1} << 32;
}

}  // namespace freehold::os
