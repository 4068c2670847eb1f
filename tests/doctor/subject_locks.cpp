// SPDX-License-Identifier: MIT
// The roles of tests/doctor/subject.cpp that wait for locks and for work.
#include "tests/doctor/subject_locks.hpp"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

// Two threads, of which one sleeps with a mutex that the other waits for. Each also has a mutex that the other does not use,
// and each waits for work at the end.
void locks() {
  static std::mutex shared;
  std::mutex own[2];
  static std::mutex asking;
  static std::condition_variable asked;
  const auto until = [](int ms) { return std::chrono::steady_clock::now() + std::chrono::milliseconds(ms); };
  const auto hammer = [&](unsigned me) {
    for (const auto end = until(400); std::chrono::steady_clock::now() < end;) {
      {
        const std::lock_guard alone(own[me]);
        std::free(std::malloc(100));
      }
      const std::lock_guard held(shared);  // the line that is waited at
      usleep(2'000);
    }
    std::unique_lock lock(asking);
    asked.wait_for(lock, std::chrono::milliseconds(100), [] { return false; });
  };
  std::thread other(hammer, 1);
  hammer(0);
  other.join();
}

// The same with a lock made of a futex (Drepper, "Futexes are tricky") and with C11's, and a wait for work by std::atomic.
void other_locks() {
  struct FutexLock {
    std::atomic<int> state{0};  // 1: held; 2: and somebody waits
    void lock() {
      int free = 0;
      if (state.compare_exchange_strong(free, 1)) return;
      while (state.exchange(2) != 0) syscall(SYS_futex, &state, FUTEX_WAIT_PRIVATE, 2, nullptr, nullptr, 0);
    }
    void unlock() {
      if (state.exchange(0) == 2) syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
  };
  static FutexLock by_hand;
  static mtx_t c11;
  mtx_init(&c11, mtx_plain);
  static std::atomic<int> work{0};
  const auto hammer = [] {
    const auto hold = [](const auto& lock, const auto& unlock) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
      while (std::chrono::steady_clock::now() < end) {
        lock();
        usleep(2'000);
        unlock();
        usleep(100);
      }
    };
    hold([] { by_hand.lock(); }, [] { by_hand.unlock(); });
    hold([] { mtx_lock(&c11); }, [] { mtx_unlock(&c11); });
  };
  std::thread worker([] { work.wait(0); });
  std::thread other(hammer);
  hammer();
  other.join();
  work = 1;
  work.notify_one();
  worker.join();
}

// A preloaded library must not change this about locks.
void lock_results() {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutex_t mutex;
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&mutex, &attributes);
  if (pthread_mutex_lock(&mutex) != 0 || pthread_mutex_lock(&mutex) != EDEADLK || pthread_mutex_unlock(&mutex) != 0)
    std::abort();
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&mutex, &attributes);
  for (int i = 0; i < 3; ++i)
    if (pthread_mutex_lock(&mutex) != 0) std::abort();
  for (int i = 0; i < 3; ++i)
    if (pthread_mutex_unlock(&mutex) != 0) std::abort();
  if (pthread_mutex_unlock(&mutex) != EPERM) std::abort();
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_NORMAL);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  for (const bool is_held_at_first : {false, true}) {
    pthread_mutex_init(&mutex, &attributes);
    std::atomic<bool> has_it{false};
    std::thread dies([&] {
      pthread_mutex_lock(&mutex);
      has_it = true;
      if (is_held_at_first) usleep(50'000);
    });
    if (!is_held_at_first) dies.join();
    while (!has_it) sched_yield();
    if (pthread_mutex_lock(&mutex) != EOWNERDEAD || pthread_mutex_consistent(&mutex) != 0) std::abort();
    pthread_mutex_unlock(&mutex);
    if (is_held_at_first) dies.join();
  }
  pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
  if (pthread_rwlock_rdlock(&rwlock) != 0 || pthread_rwlock_rdlock(&rwlock) != 0) std::abort();
  pthread_rwlock_unlock(&rwlock);
  pthread_rwlock_unlock(&rwlock);
  if (pthread_rwlock_wrlock(&rwlock) != 0 || pthread_rwlock_wrlock(&rwlock) != EDEADLK) std::abort();
  const timespec past{};
  sem_t semaphore;
  sem_init(&semaphore, 0, 1);
  errno = 0;
  if (sem_wait(&semaphore) != 0 || errno != 0 || sem_timedwait(&semaphore, &past) != -1 || errno != ETIMEDOUT) std::abort();
  pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&plain);
  if (pthread_cond_timedwait(&condition, &plain, &past) != ETIMEDOUT) std::abort();
  // A thread that is cancelled in a wait runs its destructors.
  static std::atomic<int> cleaned{0};
  for (const bool by_semaphore : {false, true}) {
    pthread_t thread;
    static sem_t* waits_for;
    waits_for = by_semaphore ? &semaphore : nullptr;
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          struct Cleaner {
            ~Cleaner() { ++cleaned; }
          } cleaner;
          std::mutex own;
          std::unique_lock lock(own);
          pthread_cond_t never = PTHREAD_COND_INITIALIZER;
          if (waits_for != nullptr)
            sem_wait(waits_for);
          else
            pthread_cond_wait(&never, own.native_handle());
          return nullptr;
        },
        nullptr);
    usleep(20'000);
    pthread_cancel(thread);
    pthread_join(thread, nullptr);
  }
  if (cleaned != 2) std::abort();
}

// Threads wait for the lock of a stream, which the C library takes for each character. Half a second.
void stream() {
  std::FILE* const file = std::fopen("/dev/null", "we");
  const auto put = [file] {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    while (std::chrono::steady_clock::now() < until)
      for (int i = 0; i < 1000; ++i) std::putc('x', file);
  };
  std::thread threads[] = {std::thread(put), std::thread(put), std::thread(put)};
  for (std::thread& thread : threads) thread.join();
  std::fclose(file);
}
