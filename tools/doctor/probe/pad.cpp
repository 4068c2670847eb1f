// SPDX-License-Identifier: MIT
// libfreehold-pad.so: preloaded into a program, it makes each of its blocks a cache line longer and otherwise leaves its
// malloc alone. With a whole line of nothing between two blocks none share one: what the program gains by it, sharing of
// lines between blocks had cost.
//
// With FREEHOLD_DELAY_NS blocks stay as long as they are, and each call takes so many nanoseconds longer: by what that costs
// the program, it is known how much of its time hangs on the time of a call. With FREEHOLD_TRIM_MS they stay so, too, and
// trim.cpp gives free pages back.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include "freehold/base/bits.hpp"
#include "tools/doctor/probe/next_malloc.hpp"

#define FREEHOLD_EXPORT extern "C" __attribute__((visibility("default")))

namespace {
using freehold::doctor::array_bytes;
using freehold::doctor::Beginning;
using freehold::doctor::NextMalloc;

constinit Beginning g_beginning;
constinit NextMalloc g_next{};
constinit bool g_looking = false;
constinit std::uint64_t g_delay_ticks = 0;
constinit std::size_t g_padding = freehold::base::kCacheLine;

[[nodiscard]] inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  std::uint64_t now;
  asm volatile("mrs %0, cntvct_el0" : "=r"(now));
  return now;
#endif
}

std::uint64_t now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}
// Ticks of the CPU's clock in `ns`, found in a fifth of a millisecond.
std::uint64_t ticks_in(double ns) noexcept {
  constexpr std::uint64_t kLook_ns = 200'000;
  const std::uint64_t began_ns = now_ns(), began = ticks();
  std::uint64_t ended_ns = began_ns;
  while (ended_ns - began_ns < kLook_ns) ended_ns = now_ns();
  return static_cast<std::uint64_t>(ns * static_cast<double>(ticks() - began) / static_cast<double>(ended_ns - began_ns));
}

// Before main and before any thread, like the probe's.
[[gnu::noinline]] bool look() noexcept {
  if (g_looking) return false;
  g_looking = true;
  g_next = NextMalloc::look_up();
  if (const char* const delay = std::getenv("FREEHOLD_DELAY_NS")) {
    g_delay_ticks = ticks_in(std::strtod(delay, nullptr));
    g_padding = 0;
  }
  if (std::getenv("FREEHOLD_TRIM_MS") != nullptr) g_padding = 0;
  g_looking = false;
  return true;
}
[[nodiscard]] inline bool ready() noexcept { return g_next.malloc != nullptr || look(); }

inline void delay() noexcept {
  if (g_delay_ticks == 0) [[likely]]
    return;
  for (const std::uint64_t began = ticks(); ticks() - began < g_delay_ticks;) {
  }
}

// Sizes that cannot be served stay what they are: they shall fail as they would.
[[nodiscard]] inline std::size_t padded(std::size_t bytes) noexcept {
  return bytes < std::size_t{PTRDIFF_MAX} - g_padding ? bytes + g_padding : bytes;
}

}  // namespace

FREEHOLD_EXPORT void* malloc(std::size_t bytes) {
  if (!ready()) [[unlikely]]
    return g_beginning.take(bytes);
  delay();
  return g_next.malloc(padded(bytes));
}
FREEHOLD_EXPORT void free(void* block) {
  if (block == nullptr || g_beginning.has(block)) return;
  delay();
  g_next.free(block);
}
FREEHOLD_EXPORT void* calloc(std::size_t n, std::size_t bytes) {
  std::size_t all = 0;
  if (!array_bytes(n, bytes, all)) return nullptr;
  if (!ready()) [[unlikely]]
    return g_beginning.take(all);
  delay();
  return g_next.calloc(1, padded(all));
}
FREEHOLD_EXPORT void* realloc(void* block, std::size_t bytes) {
  if (!ready()) [[unlikely]]
    return g_beginning.take(bytes);
  if (g_beginning.has(block)) return g_beginning.move(block, bytes);
  delay();
  if (block != nullptr && bytes == 0) return g_next.realloc(block, 0);  // which frees it
  return g_next.realloc(block, padded(bytes));
}
FREEHOLD_EXPORT void* reallocarray(void* block, std::size_t n, std::size_t bytes) {
  std::size_t all = 0;
  return array_bytes(n, bytes, all) ? realloc(block, all) : nullptr;
}
FREEHOLD_EXPORT void* memalign(std::size_t alignment, std::size_t bytes) {
  if (!ready()) return nullptr;
  delay();
  return g_next.memalign(alignment, padded(bytes));
}
FREEHOLD_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (!ready()) return nullptr;
  delay();
  return g_next.aligned_alloc(alignment, padded(bytes));
}
FREEHOLD_EXPORT int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
  if (!ready()) return ENOMEM;
  delay();
  return g_next.posix_memalign(block, alignment, padded(bytes));
}
// Whole pages of their own already.
FREEHOLD_EXPORT void* valloc(std::size_t bytes) { return ready() ? g_next.valloc(bytes) : nullptr; }
FREEHOLD_EXPORT void* pvalloc(std::size_t bytes) { return ready() ? g_next.pvalloc(bytes) : nullptr; }
