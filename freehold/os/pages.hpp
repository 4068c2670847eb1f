// Address space and pages: everything that Freehold asks of mmap, mprotect and madvise, and nothing else does.
// Reserved memory cannot be touched; committed memory reads as zero until written; purged memory stays committed and
// reads as zero again. Sizes and addresses are multiples of page_bytes().
// Threads: any. Cost: a system call each. Errors: false or null, errno set by the system; never fatal.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace freehold::os {

// What the arena asks of the system. Tests put in one that fails at the k-th call.
template <class P>
concept PageSource = requires(P& p, void* address, std::size_t bytes) {
  { p.reserve(bytes, bytes) } -> std::same_as<void*>;
  { p.reserve_at(address, bytes) } -> std::same_as<bool>;
  { p.commit(address, bytes) } -> std::same_as<bool>;
  { p.purge(address, bytes) } -> std::same_as<bool>;
  { p.map(bytes) } -> std::same_as<void*>;
  { p.advise_huge(address, bytes) } -> std::same_as<void>;
  { p.move(address, address, bytes) } -> std::same_as<bool>;
  { p.release(address, bytes) } -> std::same_as<void>;
};

struct Pages {
  // Address space of `bytes`, aligned to `alignment`, without access; null if there is none.
  static void* reserve(std::size_t bytes, std::size_t alignment) noexcept;
  // The same at exactly `address`; false if something is there already. An existing mapping is never replaced.
  static bool reserve_at(void* address, std::size_t bytes) noexcept;
  // Makes reserved memory readable and writable; strict overcommit accounts it now.
  static bool commit(void* address, std::size_t bytes) noexcept;
  // Gives the pages back to the system at once (MADV_DONTNEED); the range stays committed and reads as zero.
  static bool purge(void* address, std::size_t bytes) noexcept;
  // A committed mapping of its own anywhere, for blocks that do not fit the arena and for sparse tables; null if there is
  // none.
  static void* map(std::size_t bytes) noexcept;
  // Asks for transparent huge pages; advice only.
  static void advise_huge(void* address, std::size_t bytes) noexcept;
  // Moves the content of a committed range to another committed range, as far as possible by moving its pages; what the
  // old range reads as is unspecified then. False, and nothing moved, where the kernel cannot (before 5.7, or under an
  // emulator).
  static bool move(void* from, void* to, std::size_t bytes) noexcept;
  // Ends a reservation or mapping.
  static void release(void* address, std::size_t bytes) noexcept;
};
static_assert(PageSource<Pages>);

[[nodiscard]] std::size_t page_bytes() noexcept;
// The largest page that a kernel of this architecture may be built with: what is asked for in multiples of it is in
// multiples of page_bytes() as well.
#if defined(__x86_64__)
inline constexpr std::size_t kLargestPageBytes = 4096;
#else
inline constexpr std::size_t kLargestPageBytes = 64 * 1024;
#endif
// The smaller of RLIMIT_AS and RLIMIT_DATA in bytes; SIZE_MAX when neither limits.
[[nodiscard]] std::size_t address_space_limit() noexcept;
[[nodiscard]] std::size_t physical_memory_bytes() noexcept;

}  // namespace freehold::os
