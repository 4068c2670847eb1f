// SPDX-License-Identifier: MIT
// Fault: a lock of the program's own that is no pthread's: a futex by hand, C11's mtx_t, std::atomic's wait, or a spin lock
// that yields or does not. Most of the work is done while it is held.
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <threads.h>

#include <atomic>

#include "tests/doctor/faults/fault.hpp"

namespace {

// 0: free, 1: held, 2: held and somebody waits (Drepper, "Futexes are tricky").
class FutexLock {
 public:
  void lock() {
    int free = 0;
    if (state_.compare_exchange_strong(free, 1)) return;
    while (state_.exchange(2) != 0) syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, 2, nullptr, nullptr, 0);
  }
  void unlock() {
    if (state_.exchange(0) == 2) syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

 private:
  std::atomic<int> state_{0};
};

class WaitLock {
 public:
  void lock() {
    int free = 0;
    if (state_.compare_exchange_strong(free, 1)) return;
    while (state_.exchange(2) != 0) state_.wait(2);
  }
  void unlock() {
    if (state_.exchange(0) == 2) state_.notify_one();
  }

 private:
  std::atomic<int> state_{0};
};

class C11Lock {
 public:
  C11Lock() { mtx_init(&mutex_, mtx_plain); }
  void lock() { mtx_lock(&mutex_); }
  void unlock() { mtx_unlock(&mutex_); }

 private:
  mtx_t mutex_;
};

template <bool kYields>
class SpinLock {
 public:
  void lock() {
    while (held_.exchange(true))
      while (held_.load(std::memory_order_relaxed)) {
        if constexpr (kYields)
          sched_yield();
        else
          __builtin_ia32_pause();
      }
  }
  void unlock() { held_.store(false); }

 private:
  std::atomic<bool> held_{false};
};

template <class Lock>
void work(unsigned threads, std::size_t rounds) {
  static Lock lock;
  fault::in_threads(threads, [&](unsigned) {
    for (std::size_t i = 0; i < rounds; ++i) {
      lock.lock();
      fault::compute(9'000);
      lock.unlock();
      fault::compute(3'000);
    }
  });
}

template <class Lock>
void share(const fault::Options& options) {
  work<Lock>(options.threads, options.part(40e3));
}

}  // namespace

int main(int count, char** words) {
  return fault::run(count, words,
                    {{"futex", share<FutexLock>},
                     {"atomic", share<WaitLock>},
                     {"c11", share<C11Lock>},
                     {"yield", share<SpinLock<true>>},
                     {"spin", [](const auto& options) {
                        const unsigned threads = fault::machine_threads();
                        work<SpinLock<false>>(threads, options.part(40e3) * options.threads / threads);
                      }}});
}
