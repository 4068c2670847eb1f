// SPDX-License-Identifier: MIT
// Times how long the program waits for its own locks, and how long it waits for work.
//
// Each call tries first, and only a lock that is held is waited for in the real call, between two readings of the clock. A
// wait for a condition variable is always timed; what pthread_cond_wait() then waits for its mutex is part of it. A
// semaphore may be a lock or announce work: lock_guess.hpp judges by the thread that posts it. Results are passed on as they
// are: EDEADLK, EOWNERDEAD, EINTR and the rest mean to the program what they always did.
//
// Not here: locks inside libc (malloc's own are no calls), C11's mtx_lock(), which goes round these, and futexes of the
// program's own (probe_futex.cpp). Not noexcept where POSIX has a point of cancellation: such a thread unwinds through here.
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

#include <atomic>
#include <cerrno>
#include <ctime>

#include "tools/doctor/probe/lock_guess.hpp"
#include "tools/doctor/probe/recorder.hpp"

#define FREEHOLD_EXPORT extern "C" __attribute__((visibility("default")))

namespace {
using namespace freehold::doctor::probe;
using freehold::doctor::WaitKind;

// Before 2.3.2 a condition variable was another type on x86; both have the same name.
#if defined(__x86_64__)
constexpr const char* kConditions = "GLIBC_2.3.2";
#else
constexpr const char* kConditions = "GLIBC_2.17";
#endif

// The function of a name that is next in the order of libraries, looked up at its first call. Threads: any.
template <class F>
class Next {
 public:
  constexpr explicit Next(const char* name, const char* version = nullptr) : name_(name), version_(version) {}

  template <class... Arguments>
  int operator()(Arguments... arguments) {
    F* function = function_.load(std::memory_order_relaxed);  // relaxed: what it points to was there before any thread
    if (function == nullptr) [[unlikely]]
      function = look();
    return function(arguments...);
  }
  void prepare() { look(); }

 private:
  [[gnu::noinline]] F* look() {
    void* const found = version_ == nullptr ? dlsym(RTLD_NEXT, name_) : dlvsym(RTLD_NEXT, name_, version_);
    auto* const function = reinterpret_cast<F*>(found);
    function_.store(function, std::memory_order_relaxed);
    return function;
  }

  const char* name_;
  const char* version_;
  std::atomic<F*> function_{nullptr};
};

[[nodiscard]] bool is_listening() noexcept { return is_on() && !t_thread.inside; }

// A lock that `attempt` may get at once, and `wait` in the end.
template <class Attempt, class Wait>
inline int take(WaitKind kind, const void* lock, const Attempt& attempt, const Wait& wait) {
  if (const int result = attempt(); result != EBUSY) [[likely]]
    return result;
  if (!is_listening()) return wait();
  const std::uint64_t began = ticks();
  const int result = wait();
  if (result == 0 || result == EOWNERDEAD) waited(kind, lock, began, ticks());
  return result;
}

template <class Wait>
inline int idle(WaitKind kind, const void* what, const Wait& wait) {
  if (!is_listening()) return wait();
  const std::uint64_t began = ticks();
  const int result = wait();
  waited(kind, what, began, ticks());
  return result;
}

constinit Next<int(pthread_mutex_t*)> g_mutex_lock("pthread_mutex_lock"), g_mutex_trylock("pthread_mutex_trylock");
constinit Next<int(pthread_mutex_t*, const timespec*)> g_mutex_timedlock("pthread_mutex_timedlock");
constinit Next<int(pthread_mutex_t*, clockid_t, const timespec*)> g_mutex_clocklock("pthread_mutex_clocklock");
constinit Next<int(pthread_rwlock_t*)> g_rdlock("pthread_rwlock_rdlock"), g_tryrdlock("pthread_rwlock_tryrdlock"),
    g_wrlock("pthread_rwlock_wrlock"), g_trywrlock("pthread_rwlock_trywrlock");
constinit Next<int(pthread_spinlock_t*)> g_spin_lock("pthread_spin_lock"), g_spin_trylock("pthread_spin_trylock");
constinit Next<int(pthread_cond_t*, pthread_mutex_t*)> g_cond_wait("pthread_cond_wait", kConditions);
constinit Next<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)> g_cond_timedwait("pthread_cond_timedwait",
                                                                                         kConditions);
constinit Next<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)> g_cond_clockwait(
    "pthread_cond_clockwait");
constinit Next<int(sem_t*)> g_sem_wait("sem_wait"), g_sem_trywait("sem_trywait");
constinit Next<int(sem_t*, const timespec*)> g_sem_timedwait("sem_timedwait");
constinit Next<int(sem_t*, clockid_t, const timespec*)> g_sem_clockwait("sem_clockwait");
constinit Next<int(sem_t*)> g_sem_post("sem_post");

// sem_post() may be called by signal handlers, where functions cannot be looked up.
[[gnu::constructor]] void prepare() { g_sem_post.prepare(); }

// A wait for a semaphore that was not free. glibc's semaphores are futexes: one that is a lock is recorded as such.
template <class Wait>
inline int wait_for(sem_t* semaphore, const Wait& wait) {
  if (!is_listening()) return wait();
  const std::uint64_t began = ticks();
  const int result = wait();
  const bool is_lock = result == 0 && waited_for_lock(semaphore);
  waited(is_lock ? WaitKind::kFutexLock : WaitKind::kSemaphore, semaphore, began, ticks());
  return result;
}

// Returns whether the semaphore was taken at once. The real calls are points of cancellation even then.
[[nodiscard]] bool take_at_once(sem_t* semaphore) {
  const int saved = errno;
  pthread_testcancel();
  if (g_sem_trywait(semaphore) == 0) return true;
  errno = saved;
  return false;
}

}  // namespace

FREEHOLD_EXPORT int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  return take(WaitKind::kMutex, mutex, [=] { return g_mutex_trylock(mutex); }, [=] { return g_mutex_lock(mutex); });
}
FREEHOLD_EXPORT int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) noexcept {
  return take(
      WaitKind::kMutex, mutex, [=] { return g_mutex_trylock(mutex); }, [=] { return g_mutex_timedlock(mutex, until); });
}
FREEHOLD_EXPORT int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* until) noexcept {
  return take(
      WaitKind::kMutex, mutex, [=] { return g_mutex_trylock(mutex); },
      [=] { return g_mutex_clocklock(mutex, clock, until); });
}
FREEHOLD_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  return take(WaitKind::kReadLock, lock, [=] { return g_tryrdlock(lock); }, [=] { return g_rdlock(lock); });
}
FREEHOLD_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  return take(WaitKind::kWriteLock, lock, [=] { return g_trywrlock(lock); }, [=] { return g_wrlock(lock); });
}
FREEHOLD_EXPORT int pthread_spin_lock(pthread_spinlock_t* lock) noexcept {
  const void* const at = const_cast<const int*>(lock);
  return take(WaitKind::kSpinLock, at, [=] { return g_spin_trylock(lock); }, [=] { return g_spin_lock(lock); });
}

FREEHOLD_EXPORT int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  return idle(WaitKind::kCondition, condition, [=] { return g_cond_wait(condition, mutex); });
}
FREEHOLD_EXPORT int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  return idle(WaitKind::kCondition, condition, [=] { return g_cond_timedwait(condition, mutex, until); });
}
FREEHOLD_EXPORT int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                           const timespec* until) {
  return idle(WaitKind::kCondition, condition, [=] { return g_cond_clockwait(condition, mutex, clock, until); });
}

FREEHOLD_EXPORT int sem_wait(sem_t* semaphore) {
  if (take_at_once(semaphore)) return 0;
  return wait_for(semaphore, [=] { return g_sem_wait(semaphore); });
}
FREEHOLD_EXPORT int sem_post(sem_t* semaphore) noexcept {
  if (is_listening()) released(semaphore);
  return g_sem_post(semaphore);
}
FREEHOLD_EXPORT int sem_timedwait(sem_t* semaphore, const timespec* until) {
  if (take_at_once(semaphore)) return 0;
  return wait_for(semaphore, [=] { return g_sem_timedwait(semaphore, until); });
}
FREEHOLD_EXPORT int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* until) {
  if (take_at_once(semaphore)) return 0;
  return wait_for(semaphore, [=] { return g_sem_clockwait(semaphore, clock, until); });
}
