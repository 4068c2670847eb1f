// The probe's ear for waits that are no pthread's: futexes that the program, its C++ library's std::atomic::wait or its
// language's runtime call by syscall(), and C11's mutexes, which go round pthread_mutex_lock().
//
// A futex does not say whether it is a lock. Of a lock, each thread that had to wait for it releases it later, and then
// wakes one of the others; who waits for work, a barrier or a turn is woken by somebody else. So of each address the waits
// are counted, and how many of them were followed by such a release of the same thread; from half of them on it is a lock.
// What was recorded of it before that was known is set right when the recording is read.
//
// Any thread. A futex that does not wait costs two comparisons more.
#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <threads.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "freehold/doctor/recorder.hpp"

#define FREEHOLD_EXPORT extern "C" __attribute__((visibility("default")))

namespace {
using namespace freehold::doctor::probe;
using freehold::doctor::WaitKind;

constexpr unsigned kPlacesBits = 10;
constexpr std::uint32_t kWaitsToJudge = 3;
constexpr std::size_t kUnreleased = 4;  // locks that a thread had to wait for and holds

// An address, and what was seen of it. Others of the same hash take the place over and are counted from the beginning.
// relaxed throughout: counts, which nothing is published by; one that is lost is one sample judged otherwise.
struct Place {
  std::atomic<const void*> address{nullptr};
  std::atomic<std::uint32_t> waits{0}, releases{0};
};
constinit std::array<Place, std::size_t{1} << kPlacesBits> g_places{};
constinit thread_local std::array<const void*, kUnreleased> t_unreleased{};
constinit thread_local unsigned t_next_unreleased = 0;

Place& place_at(const void* address) noexcept {
  Place& place = g_places[mix(reinterpret_cast<std::uintptr_t>(address) >> 2) >> (64 - kPlacesBits)];
  if (place.address.load(std::memory_order_relaxed) != address) {
    place.address.store(address, std::memory_order_relaxed);
    place.waits.store(0, std::memory_order_relaxed);
    place.releases.store(0, std::memory_order_relaxed);
  }
  return place;
}

// A wait of this thread for the address is over. Whether it is a lock, as far as is known. A thread that waits again before
// it has released anything did not get it: it still waits for the same.
bool waited_for_lock(const void* address) noexcept {
  Place& place = place_at(address);
  if (std::ranges::find(t_unreleased, address) == t_unreleased.end()) {
    place.waits.fetch_add(1, std::memory_order_relaxed);
    t_unreleased[t_next_unreleased++ % kUnreleased] = address;
  }
  const std::uint32_t waits = place.waits.load(std::memory_order_relaxed);
  return waits >= kWaitsToJudge && 2 * place.releases.load(std::memory_order_relaxed) >= waits;
}

// This thread wakes one of those that wait for the address.
void released(const void* address) noexcept {
  for (const void*& known : t_unreleased) {
    if (known != address) continue;
    known = nullptr;
    place_at(address).releases.fetch_add(1, std::memory_order_relaxed);
    return;
  }
}

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
