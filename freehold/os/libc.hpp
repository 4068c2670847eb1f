// SPDX-License-Identifier: MIT
// The functions of libc that the engine needs and no call of the kernel replaces, past those of the same name that a
// program, a preloaded library or one that is loaded later brings. Tracers, profilers and garbage collectors wrap
// pthread_create, and such a wrapper allocates, or takes a lock that the program holds over malloc.
//
// find_libc() reads libc's own table of symbols: dlsym() takes the loader's lock, which another thread may hold while it
// waits for ours, and is wrapped, too. Before it, in a static program, and beside a sanitizer, which must see all threads,
// they are those that the linker chose.
//
// Any thread. Cost of a call: a load more.
#pragma once
#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <ctime>

namespace freehold::os {

template <class Function>
class OfLibc {
 public:
  constexpr explicit OfLibc(Function* linked) noexcept : function_(linked) {}
  // Relaxed, both: every thread finds the same, and a function publishes nothing.
  template <class... Arguments>
  auto operator()(Arguments... arguments) const noexcept {
    return function_.load(std::memory_order_relaxed)(arguments...);
  }
  void set(void* found) noexcept { function_.store(reinterpret_cast<Function*>(found), std::memory_order_relaxed); }
  [[nodiscard]] Function* address() const noexcept { return function_.load(std::memory_order_relaxed); }

 private:
  std::atomic<Function*> function_;
};

struct [[gnu::visibility("hidden")]] Libc {
  static OfLibc<int(clockid_t, timespec*)> clock_gettime;  // without a call of the kernel
  static OfLibc<unsigned long(unsigned long)> getauxval;
  static OfLibc<int(pthread_attr_t*)> pthread_attr_init;
  static OfLibc<int(pthread_attr_t*, void*, std::size_t)> pthread_attr_setstack;
  static OfLibc<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)> pthread_create;
  static OfLibc<void*(pthread_key_t)> pthread_getspecific;
  static OfLibc<int(pthread_t, void**)> pthread_join;
  static OfLibc<int(pthread_key_t*, void (*)(void*))> pthread_key_create;
  static OfLibc<int(int, int*)> pthread_setcancelstate;
  static OfLibc<int(pthread_key_t, const void*)> pthread_setspecific;
  static OfLibc<int()> sched_getcpu;  // without a call of the kernel
};

// Finds them. No allocation, no lock. Pre: the dynamic linker has bound this library or program. Cost: a microsecond; once.
void find_libc() noexcept;

}  // namespace freehold::os
