// libfreehold-pad.so: preloaded into a program, it makes each of its blocks a cache line longer and otherwise leaves its
// malloc alone. With a whole line of nothing between two blocks none share one: what the program gains by it, sharing of
// lines between blocks had cost.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "freehold/base/bits.hpp"
#include "freehold/doctor/next_malloc.hpp"

#define FREEHOLD_EXPORT extern "C" __attribute__((visibility("default")))

namespace {
using freehold::doctor::Beginning;
using freehold::doctor::NextMalloc;

constinit Beginning g_beginning;
constinit NextMalloc g_next{};
constinit bool g_looking = false;

// Before main and before any thread, like the probe's.
[[gnu::noinline]] bool look() noexcept {
  if (g_looking) return false;
  g_looking = true;
  g_next = NextMalloc::look_up();
  g_looking = false;
  return true;
}
[[nodiscard]] inline bool ready() noexcept { return g_next.malloc != nullptr || look(); }

// Sizes that cannot be served stay what they are: they shall fail as they would.
[[nodiscard]] constexpr std::size_t padded(std::size_t bytes) noexcept {
  return bytes < std::size_t{PTRDIFF_MAX} - freehold::base::kCacheLine ? bytes + freehold::base::kCacheLine : bytes;
}

}  // namespace

FREEHOLD_EXPORT void* malloc(std::size_t bytes) {
  if (!ready()) [[unlikely]]
    return g_beginning.take(bytes);
  return g_next.malloc(padded(bytes));
}
FREEHOLD_EXPORT void free(void* block) {
  if (block != nullptr && !g_beginning.has(block)) g_next.free(block);
}
FREEHOLD_EXPORT void* calloc(std::size_t n, std::size_t bytes) {
  std::size_t all = 0;
  if (__builtin_mul_overflow(n, bytes, &all)) {
    errno = ENOMEM;
    return nullptr;
  }
  if (!ready()) [[unlikely]]
    return g_beginning.take(all);
  return g_next.calloc(1, padded(all));
}
FREEHOLD_EXPORT void* realloc(void* block, std::size_t bytes) {
  if (!ready()) [[unlikely]]
    return g_beginning.take(bytes);
  if (g_beginning.has(block)) {
    void* const moved = malloc(bytes);
    if (moved != nullptr) std::memcpy(moved, block, g_beginning.bytes_behind(block, bytes));
    return moved;
  }
  if (block != nullptr && bytes == 0) return g_next.realloc(block, 0);  // which frees it
  return g_next.realloc(block, padded(bytes));
}
FREEHOLD_EXPORT void* reallocarray(void* block, std::size_t n, std::size_t bytes) {
  std::size_t all = 0;
  if (__builtin_mul_overflow(n, bytes, &all)) {
    errno = ENOMEM;
    return nullptr;
  }
  return realloc(block, all);
}
FREEHOLD_EXPORT void* memalign(std::size_t alignment, std::size_t bytes) {
  return ready() ? g_next.memalign(alignment, padded(bytes)) : nullptr;
}
FREEHOLD_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return ready() ? g_next.aligned_alloc(alignment, padded(bytes)) : nullptr;
}
FREEHOLD_EXPORT int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
  return ready() ? g_next.posix_memalign(block, alignment, padded(bytes)) : ENOMEM;
}
// Whole pages of their own already.
FREEHOLD_EXPORT void* valloc(std::size_t bytes) { return ready() ? g_next.valloc(bytes) : nullptr; }
FREEHOLD_EXPORT void* pvalloc(std::size_t bytes) { return ready() ? g_next.pvalloc(bytes) : nullptr; }
