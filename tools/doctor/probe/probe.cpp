// SPDX-License-Identifier: MIT
// libfreehold-probe.so: preloaded into a program, it stands before the program's malloc and records a sample of the calls
// (recorder.hpp). It allocates nothing for the program: every call goes on to the next malloc, whichever that is.
// operator new is not here: that of the C++ library calls malloc, and a program's own one is its own business.
//
// Where there is no FREEHOLD_PROBE_DIRECTORY, calls are passed on and nothing else.
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "tools/doctor/probe/next_malloc.hpp"
#include "tools/doctor/probe/recorder.hpp"

#define FREEHOLD_EXPORT extern "C" __attribute__((visibility("default")))

namespace {
using namespace freehold::doctor::probe;
using freehold::doctor::array_bytes;
using freehold::doctor::Beginning;
using freehold::doctor::NextMalloc;

constinit Beginning g_beginning;
constinit NextMalloc g_next{};
constinit bool g_looking = false;

// Before main and before any thread: at the first call of malloc, in begin_of_process() at the latest.
[[gnu::noinline]] bool look() noexcept {
  if (g_looking) return false;
  g_looking = true;
  g_next = NextMalloc::look_up();
  start();
  g_looking = false;
  return true;
}
[[nodiscard]] inline bool ready() noexcept { return g_next.malloc != nullptr || look(); }

// Returns whether this call is to be recorded: the countdown came to its end, or the block is so large that each is. These
// leave the countdown alone: one at its end would stand for itself and for all the calls before it.
[[nodiscard]] inline bool is_due(std::size_t bytes) noexcept {
  Thread& thread = t_thread;
  if (bytes >= thread.all_from) return true;
  thread.allocations.left -= static_cast<std::int64_t>(step_of(bytes));
  return thread.allocations.left <= 0;
}
template <class Allocate>
[[gnu::noinline]] void* allocate_recorded(std::size_t bytes, const Allocate& allocate) noexcept {
  Thread& thread = t_thread;
  if (thread.inside || !is_on()) return allocate();
  if (bytes < thread.all_from && thread.allocations.behind > 0) {
    get_ready(thread.allocations);
    return allocate();
  }
  Measured call(thread.allocations);
  void* const block = allocate();
  call.end();
  if (block != nullptr) sampled_allocation(call, block, bytes);
  return block;
}
template <class Allocate>
[[nodiscard]] inline void* allocate(std::size_t bytes, const Allocate& next) noexcept {
  void* const block = is_due(bytes) ? allocate_recorded(bytes, next) : next();
  if (is_watched(block) && !t_thread.inside) [[unlikely]]
    page_allocation(block, bytes);
  return block;
}
// Ends what is known of a block, before its memory is another block's.
inline void end(void* block) noexcept {
  if (g_sampled.may_have(block) && !t_thread.inside) [[unlikely]]
    end_of_sampled(block);
  if (is_watched(block) && !t_thread.inside) [[unlikely]]
    page_free(block);
}
[[gnu::noinline]] void free_recorded(void* block) noexcept {
  Thread& thread = t_thread;
  if (thread.inside || !is_on()) return g_next.free(block);
  if (thread.frees.behind > 0) {
    get_ready(thread.frees);
    return g_next.free(block);
  }
  Measured call(thread.frees);
  g_next.free(block);
  call.end();
  sampled_free(call, block);
}

// Ends a process without its destructors, as children of fork do. Looked up before: signal handlers call it, and children of
// a fork at which another thread was in the loader.
using Exit = void(int);
constinit Exit* g_exit = nullptr;
// A process may wait for locks, or fork, before its first allocation, or without one.
[[gnu::constructor]] void begin_of_process() {
  g_exit = reinterpret_cast<Exit*>(dlsym(RTLD_NEXT, "_exit"));
  static_cast<void>(ready());
}
[[gnu::destructor]] void end_of_process() { finish(); }

[[noreturn]] void end_by_exit(int status) noexcept {
  finish();
  g_exit(status);
  __builtin_unreachable();
}

}  // namespace

FREEHOLD_EXPORT void _exit(int status) { end_by_exit(status); }
FREEHOLD_EXPORT void _Exit(int status) noexcept { end_by_exit(status); }

FREEHOLD_EXPORT void* malloc(std::size_t bytes) {
  if (!ready()) [[unlikely]]
    return g_beginning.take(bytes);
  return allocate(bytes, [bytes] { return g_next.malloc(bytes); });
}

FREEHOLD_EXPORT void free(void* block) {
  if (block == nullptr || g_beginning.has(block)) return;
  end(block);
  if (--t_thread.frees.left <= 0) [[unlikely]]
    return free_recorded(block);
  g_next.free(block);
}

FREEHOLD_EXPORT void* calloc(std::size_t n, std::size_t bytes) {
  if (!ready()) [[unlikely]]
    return g_beginning.take(n * bytes);
  return allocate(n * bytes, [=] { return g_next.calloc(n, bytes); });
}

// The end of one block and the beginning of another, wherever that lies. When it fails, the old one has not ended; that it
// was recorded as ended is an error of one sample.
FREEHOLD_EXPORT void* realloc(void* block, std::size_t bytes) {
  if (!ready()) [[unlikely]]
    return g_beginning.take(bytes);
  if (g_beginning.has(block)) return g_beginning.move(block, bytes);
  if (block != nullptr) end(block);
  return allocate(bytes, [=] { return g_next.realloc(block, bytes); });
}

FREEHOLD_EXPORT void* reallocarray(void* block, std::size_t n, std::size_t bytes) {
  std::size_t all = 0;
  return array_bytes(n, bytes, all) ? realloc(block, all) : nullptr;
}

FREEHOLD_EXPORT void* memalign(std::size_t alignment, std::size_t bytes) {
  if (!ready()) return nullptr;
  return allocate(bytes, [=] { return g_next.memalign(alignment, bytes); });
}
FREEHOLD_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (!ready()) return nullptr;
  return allocate(bytes, [=] { return g_next.aligned_alloc(alignment, bytes); });
}
FREEHOLD_EXPORT int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
  if (!ready()) return ENOMEM;
  int error = 0;
  void* made = nullptr;
  static_cast<void>(allocate(bytes, [&]() -> void* {
    error = g_next.posix_memalign(&made, alignment, bytes);
    return error == 0 ? made : nullptr;
  }));
  if (error == 0) *block = made;
  return error;
}
FREEHOLD_EXPORT void* valloc(std::size_t bytes) {
  if (!ready()) return nullptr;
  return allocate(bytes, [=] { return g_next.valloc(bytes); });
}
FREEHOLD_EXPORT void* pvalloc(std::size_t bytes) {
  if (!ready()) return nullptr;
  return allocate(bytes, [=] { return g_next.pvalloc(bytes); });
}
