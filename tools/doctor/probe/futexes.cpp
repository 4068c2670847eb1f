// SPDX-License-Identifier: MIT
// Times waits that are no pthread's: futexes that the program, its C++ library's std::atomic::wait or its language's runtime
// call by syscall(), and C11's mutexes, which do not use pthread_mutex_lock().
//
// A futex does not say whether it is a lock: lock_guess.hpp judges by the thread that releases it.
//
// Any thread. A futex that does not wait costs two comparisons more.
#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <threads.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "tools/doctor/probe/lock_guess.hpp"
#include "tools/doctor/probe/recorder.hpp"

#define FREEHOLD_EXPORT extern "C" __attribute__((visibility("default")))

namespace {
using namespace freehold::doctor::probe;
using freehold::doctor::WaitKind;
}  // namespace

#if defined(__x86_64__)
namespace {

// As libc's, whose declaration has no names for its arguments.
inline long system_call(long number, long a, long b, long c, long d, long e, long f) noexcept {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result = number;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return result;
}

inline long with_errno(long result) noexcept {
  if (result >= 0 || result < -4095) return result;
  errno = static_cast<int>(-result);
  return -1;
}

[[gnu::noinline]] long futex(long a, long b, long c, long d, long e, long f) noexcept {
  const auto* const address = reinterpret_cast<const void*>(a);  // NOLINT: it is one
  const long command = b & FUTEX_CMD_MASK;
  const bool wakes_one = (command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET) && c == 1;
  const bool waits = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_LOCK_PI;
  if (!is_on() || t_thread.inside || (!wakes_one && !waits)) return system_call(SYS_futex, a, b, c, d, e, f);
  if (wakes_one) {
    released(address);
    return system_call(SYS_futex, a, b, c, d, e, f);
  }
  const std::uint64_t began = ticks();
  const long result = system_call(SYS_futex, a, b, c, d, e, f);
  if (result == 0) {
    const bool is_lock = command == FUTEX_LOCK_PI || waited_for_lock(address);
    waited(is_lock ? WaitKind::kFutexLock : WaitKind::kFutexWait, address, began, ticks());
  }
  return result;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) long freehold_probe_syscall(long number, long a, long b, long c, long d,
                                                                              long e, long f) noexcept asm("syscall");
extern "C" long freehold_probe_syscall(long number, long a, long b, long c, long d, long e, long f) noexcept {
  if (number == SYS_futex) return with_errno(futex(a, b, c, d, e, f));
  return with_errno(system_call(number, a, b, c, d, e, f));
}
#endif

namespace {

template <class F>
F next(const char* name, std::atomic<F>& known) noexcept {
  F found = known.load(std::memory_order_relaxed);  // relaxed: what it points to was there before any thread
  if (found == nullptr) {
    found = reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
    known.store(found, std::memory_order_relaxed);
  }
  return found;
}
constinit std::atomic<int (*)(mtx_t*)> g_lock{nullptr}, g_trylock{nullptr};

}  // namespace

FREEHOLD_EXPORT int mtx_lock(mtx_t* mutex) {
  if (const int result = next("mtx_trylock", g_trylock)(mutex); result != thrd_busy) return result;
  if (!is_on() || t_thread.inside) return next("mtx_lock", g_lock)(mutex);
  const std::uint64_t began = ticks();
  const int result = next("mtx_lock", g_lock)(mutex);
  if (result == thrd_success) waited(WaitKind::kMutex, mutex, began, ticks());
  return result;
}
