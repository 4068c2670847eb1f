// SPDX-License-Identifier: MIT
// Address space and pages without a file: everything that Freehold asks of mmap, mprotect and madvise for them. (Pages of
// files: os/mapped_file.hpp.) Reserved memory cannot be touched; committed memory reads as zero until written; purged memory
// stays committed and reads as zero again. Sizes and addresses are multiples of page_bytes(). Threads: any. Cost: a system
// call each. Errors: false or null, errno set by the system; never fatal.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace freehold::os {

// The system calls of the arena, as a parameter: tests use a source that fails at the k-th call.
template <class P>
concept PageSource = requires(P& p, void* address, std::size_t bytes, unsigned attempt, const char* name) {
  { p.place(attempt, bytes, bytes) } -> std::same_as<void*>;
  { p.map_at(address, bytes) } -> std::same_as<bool>;
  { p.guard_at(address, bytes) } -> std::same_as<bool>;
  { p.map(bytes) } -> std::same_as<void*>;
  { p.unmap(address, bytes) } -> std::same_as<bool>;
  { p.purge(address, bytes) } -> std::same_as<bool>;
  { p.remap(address, bytes, bytes) } -> std::same_as<void*>;
  { p.move_onto(address, address, bytes) } -> std::same_as<bool>;
  { p.move_out(address, bytes, bytes) } -> std::same_as<void*>;
  { p.advise_huge(address, bytes, true) } -> std::same_as<void>;
  { p.populate(address, bytes) } -> std::same_as<void>;
  { p.name(address, bytes, name) } -> std::same_as<void>;
  { p.is_locked(address) } -> std::same_as<bool>;
  { p.address_limit() } -> std::same_as<std::size_t>;
  { p.most_mappings() } -> std::same_as<std::uint64_t>;
};

struct Pages {
  // Returns a place where `bytes` of address space may be used by map_at(), a multiple of `alignment`: far from where the
  // system puts its mappings, another place for each attempt, at random where the system randomises. Nothing is reserved.
  // Null: no more places.
  static void* place(unsigned attempt, std::size_t bytes, std::size_t alignment) noexcept;
  // A committed mapping at exactly `address`; false if something is there already, which is never replaced (errno is
  // EEXIST), or the system refuses.
  static bool map_at(void* address, std::size_t bytes) noexcept;
  // A mapping without access at exactly `address`, which costs no memory; false if something is there already, or the system
  // refuses.
  static bool guard_at(void* address, std::size_t bytes) noexcept;
  // A committed mapping anywhere; null: no memory.
  static void* map(std::size_t bytes) noexcept;
  // The same, empty in a child of fork (MADV_WIPEONFORK, Linux 4.14); null where the system cannot do that.
  static void* map_for_one_process(std::size_t bytes) noexcept;
  // Unmaps a mapping or a part of one. False: the system would have to split a mapping and cannot; it stays.
  static bool unmap(void* address, std::size_t bytes) noexcept;
  // Gives the pages back to the system at once (MADV_DONTNEED, for locked ones MADV_DONTNEED_LOCKED, Linux 5.18); the range
  // stays committed and reads as zero. False: the system refuses.
  static bool purge(void* address, std::size_t bytes) noexcept;
  // Makes a mapping of map(), remap() or move_out(), or a part of one, `new_bytes` long, elsewhere if need be; new pages
  // read as zero. Null: not possible, nothing changed, errno neither.
  static void* remap(void* mapping, std::size_t bytes, std::size_t new_bytes) noexcept;
  // The pages of `bytes` at `from`, within one mapping, in place of those at `to`; `from` is unmapped. False: not possible,
  // and what was at both may be unmapped or moved, all or in part (Linux 6.17: a mapping that was split since is moved in
  // parts).
  static bool move_onto(void* to, void* from, std::size_t bytes) noexcept;
  // A mapping of `new_bytes` with the content of the `bytes` at `from`, whose pages are moved, not copied; `from` stays
  // mapped, its content is unspecified then. Null: not possible (before Linux 5.7, under an emulator, over locked memory,
  // over a border between two mappings), nothing changed, errno neither.
  static void* move_out(void* from, std::size_t bytes, std::size_t new_bytes) noexcept;
  // Asks for transparent huge pages, or forbids them; advice only.
  static void advise_huge(void* address, std::size_t bytes, bool wanted = true) noexcept;
  // Makes all pages resident now (MADV_POPULATE_WRITE, Linux 5.14), or readable without a fault each, which takes no memory
  // (MADV_POPULATE_READ), from the page in which `address` lies; advice only.
  static void populate(void* address, std::size_t bytes) noexcept;
  static void populate_to_read(const void* address, std::size_t bytes) noexcept;
  // Names a range in /proc/PID/maps and smaps, if the kernel can; not in a process that is_confined().
  static void name(void* address, std::size_t bytes, const char* name) noexcept;
  // Returns whether the page at `address`, the start of a page, is locked (mlockall with MCL_FUTURE). If not, its content is
  // lost.
  static bool is_locked(void* address) noexcept;
  // The smaller of RLIMIT_AS and RLIMIT_DATA in bytes; SIZE_MAX when neither limits.
  static std::size_t address_limit() noexcept;
  // Mappings that a process may have (vm.max_map_count, 65,530 by default); 0: not known, as in a process that
  // is_confined().
  static std::uint64_t most_mappings() noexcept;

  // For pools, which reserve the address space that they may grow into. `bytes`, aligned to `alignment`, without access;
  // null: no address space.
  static void* reserve(std::size_t bytes, std::size_t alignment) noexcept;
  // Makes reserved memory readable and writable; strict overcommit accounts it now.
  static bool commit(void* address, std::size_t bytes) noexcept;
  // Forbids reading and writing; the contents stay, and commit() allows both again.
  static bool forbid(void* address, std::size_t bytes) noexcept;
  // Unmaps a reservation or mapping.
  static void release(void* address, std::size_t bytes) noexcept;
};
static_assert(PageSource<Pages>);

// page_bytes() is the kernel's page, and kLargestPageBytes the largest that a kernel of this architecture may be built with.
#if defined(__x86_64__)
inline constexpr std::size_t kLargestPageBytes = 4096;
[[nodiscard]] constexpr std::size_t page_bytes() noexcept { return kLargestPageBytes; }
#else
inline constexpr std::size_t kLargestPageBytes = 64 * 1024;
[[nodiscard]] std::size_t page_bytes() noexcept;
#endif
[[nodiscard]] std::size_t physical_memory_bytes() noexcept;
// True if all of `bytes`, one at least, read as zero.
[[nodiscard]] inline bool is_zero(const char* begin, std::size_t bytes) noexcept {
  return *begin == 0 && std::memcmp(begin, begin + 1, bytes - 1) == 0;
}

}  // namespace freehold::os
