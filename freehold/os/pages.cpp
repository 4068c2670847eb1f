// SPDX-License-Identifier: MIT
#include "freehold/os/pages.hpp"

#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "freehold/base/bits.hpp"
#include "freehold/base/keep_errno.hpp"
#include "freehold/os/cgroup_files.hpp"
#include "freehold/os/libc.hpp"
#include "freehold/os/sandbox.hpp"
#include "freehold/os/system_call.hpp"

#if defined(__SANITIZE_THREAD__)
#define FREEHOLD_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FREEHOLD_TSAN 1
#endif
#endif

namespace freehold::os {
namespace {

// A mapping at `hint`, if that is free, or anywhere. By no newer flags: the filters of OpenSSH (MAP_NORESERVE) and of
// Chromium (MAP_FIXED_NOREPLACE) refuse them.
[[nodiscard]] void* map_private(void* hint, std::size_t bytes, int access) noexcept {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  void* const got = kernel::mmap(hint, bytes, access, flags | MAP_NORESERVE, -1, 0);
  return got != MAP_FAILED || errno != EINVAL ? got : kernel::mmap(hint, bytes, access, flags, -1, 0);
}

// Newer than some C libraries.
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

// Address ranges that the system leaves empty: it puts mappings and the stack at the top and programs far below that.
// Emulators and small address spaces end earlier.
struct Zone {
  std::uintptr_t begin, end;
  unsigned attempts;
};
#if defined(FREEHOLD_TSAN)
// The others are ThreadSanitizer's own: it makes a mapping there one at address 0, and ends the program.
constexpr Zone kZones[] = {{std::uintptr_t{1} << 37, std::uintptr_t{1} << 38, 16}};
#elif __SIZEOF_POINTER__ == 4
constexpr Zone kZones[] = {{std::uintptr_t{1} << 31, std::uintptr_t{3} << 30, 2}};
#else
constexpr Zone kZones[] = {{std::uintptr_t{1} << 44, std::uintptr_t{1} << 46, 8},
                           {std::uintptr_t{1} << 42, std::uintptr_t{1} << 43, 4},
                           {std::uintptr_t{1} << 40, std::uintptr_t{1} << 41, 2},
                           {std::uintptr_t{1} << 37, std::uintptr_t{1} << 38, 2}};
#endif

// Returns bits as random as the system's own placing of stacks and libraries.
std::uintptr_t random_bits(unsigned attempt) noexcept {
  const auto stack = reinterpret_cast<std::uintptr_t>(&attempt),
             library = reinterpret_cast<std::uintptr_t>(Libc::clock_gettime.address());
  return ((stack >> 4) ^ (library >> 12) * 0x9e3779b97f4a7c15U) + attempt * 0x632be59bd9b4e019U;
}

}  // namespace

void* Pages::reserve(std::size_t bytes, std::size_t alignment) noexcept {
  // Over-reserve and trim; address space is what this asks for, so the excess lives for two calls only.
  const std::size_t asked = bytes + alignment;
  if (asked < bytes) return nullptr;
  void* raw = map_private(nullptr, asked, PROT_NONE);
  if (raw == MAP_FAILED) return nullptr;
  const auto start = reinterpret_cast<std::uintptr_t>(raw);
  const std::uintptr_t aligned = base::align_up(start, alignment);
  if (aligned != start) kernel::munmap(raw, aligned - start);
  const std::size_t tail = start + asked - (aligned + bytes);
  if (tail != 0) kernel::munmap(reinterpret_cast<void*>(aligned + bytes), tail);
  return reinterpret_cast<void*>(aligned);
}

void* Pages::place(unsigned attempt, std::size_t bytes, std::size_t alignment) noexcept {
  for (const Zone& zone : kZones) {
    if (bytes + alignment >= zone.end - zone.begin) continue;
    if (attempt >= zone.attempts) {
      attempt -= zone.attempts;
      continue;
    }
    const std::uintptr_t places = (zone.end - zone.begin - bytes) / alignment;  // at least one
    return reinterpret_cast<void*>(base::align_up(zone.begin, alignment) + (random_bits(attempt) >> 8) % places * alignment);
  }
  if (attempt >= 2) return nullptr;
  void* const found = reserve(bytes, alignment);  // where the system would put it now
  if (found != nullptr) release(found, bytes);
  return found;
}

namespace {

[[nodiscard]] bool map_exactly(void* address, std::size_t bytes, int access) noexcept {
  void* got = map_private(address, bytes, access);
  if (got == address) return true;
  if (got != MAP_FAILED) {
    kernel::munmap(got, bytes);
    errno = EEXIST;
  }
  return false;
}

}  // namespace

bool Pages::map_at(void* address, std::size_t bytes) noexcept { return map_exactly(address, bytes, PROT_READ | PROT_WRITE); }

bool Pages::guard_at(void* address, std::size_t bytes) noexcept { return map_exactly(address, bytes, PROT_NONE); }

bool Pages::unmap(void* address, std::size_t bytes) noexcept { return kernel::munmap(address, bytes) == 0; }

bool Pages::commit(void* address, std::size_t bytes) noexcept {
  return kernel::mprotect(address, bytes, PROT_READ | PROT_WRITE) == 0;
}

bool Pages::forbid(void* address, std::size_t bytes) noexcept { return kernel::mprotect(address, bytes, PROT_NONE) == 0; }

// Locked pages are refused by the first form; they stay locked when they come again.
bool Pages::purge(void* address, std::size_t bytes) noexcept {
  if (kernel::madvise(address, bytes, MADV_DONTNEED) == 0) return true;
  return errno == EINVAL && kernel::madvise(address, bytes, MADV_DONTNEED_LOCKED) == 0;
}

void* Pages::map(std::size_t bytes) noexcept {
  void* p = map_private(nullptr, bytes, PROT_READ | PROT_WRITE);
  return p == MAP_FAILED ? nullptr : p;
}

void* Pages::map_for_one_process(std::size_t bytes) noexcept {
  const base::KeepErrno keep;
  void* const pages = map(bytes);
  if (pages == nullptr || kernel::madvise(pages, bytes, MADV_WIPEONFORK) == 0) return pages;
  kernel::munmap(pages, bytes);
  return nullptr;
}

void Pages::advise_huge(void* address, std::size_t bytes, bool wanted) noexcept {
  const base::KeepErrno keep;
  kernel::madvise(address, bytes, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

void Pages::populate(void* address, std::size_t bytes) noexcept {
  const base::KeepErrno keep;
  kernel::madvise(address, bytes, MADV_POPULATE_WRITE);
}

void Pages::populate_to_read(const void* address, std::size_t bytes) noexcept {
  const base::KeepErrno keep;
  const std::size_t before = as_word(address) % page_bytes();
  kernel::madvise(const_cast<char*>(static_cast<const char*>(address)) - before, before + bytes, MADV_POPULATE_READ);
}

void Pages::name(void* address, std::size_t bytes, const char* name) noexcept {
  if (is_confined()) return;
  const base::KeepErrno keep;
  (void)kernel::prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, as_word(address), bytes, as_word(name));
}

bool Pages::is_locked(void* address) noexcept {
  const base::KeepErrno keep;
  return kernel::madvise(address, 1, MADV_DONTNEED) != 0 && errno == EINVAL;
}

void* Pages::remap(void* mapping, std::size_t bytes, std::size_t new_bytes) noexcept {
  const base::KeepErrno keep;
  void* const moved = kernel::mremap(mapping, bytes, new_bytes, MREMAP_MAYMOVE);
  return moved == MAP_FAILED ? nullptr : moved;
}

bool Pages::move_onto(void* to, void* from, std::size_t bytes) noexcept {
  const base::KeepErrno keep;
  return kernel::mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;
}

namespace {

// True for a page of a locked mapping, and where the system does not know the call. Nothing is given back.
bool refuses_cold(void* page) noexcept { return kernel::madvise(page, page_bytes(), MADV_COLD) != 0; }

// Returns whether pages can be moved out at all. QEMU's user mode (seen with 7.2) moves them, but takes the range that they
// leave for unmapped: some instructions fault there, and what is purged keeps its content. Tried with a page of our own,
// once.
bool can_move_out() noexcept {
  enum : int { kUnknown, kNo, kYes };
  static constinit std::atomic<int> g_can{kUnknown};  // relaxed: every thread finds the same
  int can = g_can.load(std::memory_order_relaxed);
  if (can == kUnknown) {
    const std::size_t page = page_bytes();
    void* const from = Pages::map(page);
    if (from == nullptr) return false;
    if (refuses_cold(from)) {  // mlockall(MCL_FUTURE): another time, perhaps
      kernel::munmap(from, page);
      return false;
    }
    void* const to = kernel::mremap(from, page, page, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr);
    can = kNo;
    if (to != MAP_FAILED) {
      auto* const byte = static_cast<volatile char*>(from);
      *byte = 1;
      can = Pages::purge(from, page) && *byte == 0 ? kYes : kNo;
    }
    kernel::munmap(from, page);
    if (to != MAP_FAILED) kernel::munmap(to, page);
    g_can.store(can, std::memory_order_relaxed);
  }
  return can == kYes;
}

}  // namespace

// DONTUNMAP keeps the old range one mapping of ours. The kernel moves the pages first and grows the new mapping then; if it
// cannot, they are copied back, since the new mapping is lost.
void* Pages::move_out(void* from, std::size_t bytes, std::size_t new_bytes) noexcept {
  const base::KeepErrno keep;
  // The kernel would move locked pages, but unlock all of the mapping that they leave.
  if (refuses_cold(from) || !can_move_out()) return nullptr;
  void* const out = kernel::mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr);
  if (out == MAP_FAILED) return nullptr;
  if (void* const grown = remap(out, bytes, new_bytes); grown != nullptr) return grown;
  std::memcpy(from, out, bytes);
  kernel::munmap(out, bytes);
  return nullptr;
}

void Pages::release(void* address, std::size_t bytes) noexcept { kernel::munmap(address, bytes); }

#if !defined(__x86_64__)
std::size_t page_bytes() noexcept {
  static constinit std::atomic<std::size_t> g_bytes{0};  // relaxed: every thread finds the same
  std::size_t bytes = g_bytes.load(std::memory_order_relaxed);
  if (bytes == 0) g_bytes.store(bytes = Libc::getauxval(AT_PAGESZ), std::memory_order_relaxed);
  return bytes;
}
#endif

std::size_t Pages::address_limit() noexcept {
  std::size_t limit = SIZE_MAX;
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit r{};
    if (kernel::getrlimit(resource, &r) == 0 && r.rlim_cur != RLIM_INFINITY)
      limit = std::min<std::size_t>(limit, r.rlim_cur);
  }
  return limit;
}

std::uint64_t Pages::most_mappings() noexcept {
  const base::KeepErrno keep;
  std::uint64_t most = 0;
  if (is_confined()) return most;
  NumberLines lines("/proc/sys/vm/max_map_count");
  if (const char* line = lines.next(); line != nullptr) (void)read_number(line, most);
  return most;
}

std::size_t physical_memory_bytes() noexcept {
  struct sysinfo info{};
  return system_call(SYS_sysinfo, &info) == 0 ? info.totalram * info.mem_unit : ~std::uint32_t{0};
}

}  // namespace freehold::os
