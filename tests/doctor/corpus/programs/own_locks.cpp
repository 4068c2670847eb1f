// SPDX-License-Identifier: MIT
// Threads update a table that one lock of the program's own guards, and compute a little between: four fifths of the work
// are done inside the lock, and nothing is allocated after the start. The lock is pthread's (mutex, spin, rwlock,
// recursive), a semaphore, C11's (mtx), or made by hand: a test-and-set spin lock (handmade), a ticket lock that yields, a
// futex (Drepper's second mutex), or std::atomic's wait.
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#include <atomic>

#include "tests/doctor/corpus/programs/common.h"

namespace {

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
pthread_spinlock_t spin;
pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
mtx_t mtx;
sem_t semaphore;
alignas(128) std::atomic<int> state{0};  // of the handmade ones: 0 free, 1 held, 2 held and waited for
alignas(128) std::atomic<unsigned> next_ticket{0};
std::atomic<unsigned> serving{0};
alignas(128) std::uint64_t table[512];

template <class Wait>
void lock_by(Wait wait) {
  int seen = 0;
  if (state.compare_exchange_strong(seen, 1)) return;
  while (state.exchange(2) != 0) wait();
}

struct Kind {
  const char* name;
  void (*lock)();
  void (*unlock)();
};
const Kind kKinds[] = {
    {"mutex", [] { pthread_mutex_lock(&mutex); }, [] { pthread_mutex_unlock(&mutex); }},
    {"recursive", [] { pthread_mutex_lock(&recursive); }, [] { pthread_mutex_unlock(&recursive); }},
    {"spin", [] { pthread_spin_lock(&spin); }, [] { pthread_spin_unlock(&spin); }},
    {"rwlock", [] { pthread_rwlock_wrlock(&rwlock); }, [] { pthread_rwlock_unlock(&rwlock); }},
    {"mtx", [] { mtx_lock(&mtx); }, [] { mtx_unlock(&mtx); }},
    {"semaphore", [] { sem_wait(&semaphore); }, [] { sem_post(&semaphore); }},
    {"handmade",
     [] {
       while (state.exchange(1, std::memory_order_acquire))
         while (state.load(std::memory_order_relaxed)) __builtin_ia32_pause();
     },
     [] { state.store(0, std::memory_order_release); }},
    {"ticket",
     [] {
       const unsigned mine = next_ticket.fetch_add(1);
       while (serving.load(std::memory_order_acquire) != mine) sched_yield();
     },
     [] { serving.fetch_add(1, std::memory_order_release); }},
    {"futex", [] { lock_by([] { syscall(SYS_futex, &state, FUTEX_WAIT_PRIVATE, 2, nullptr, nullptr, 0); }); },
     [] {
       if (state.exchange(0) == 2) syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
     }},
    {"wait", [] { lock_by([] { state.wait(2); }); },
     [] {
       if (state.exchange(0) == 2) state.notify_one();
     }},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = std::atoi(argv[1]);
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  mtx_init(&mtx, mtx_plain);
  sem_init(&semaphore, 0, 1);
  for (const Kind& kind : kKinds)
    if (!std::strcmp(kind.name, argv[2]))
      in_threads(threads, [&](int i) {
        std::uint64_t value = 77 + i;
        for (long k = 0; k < std::atol(argv[3]) / threads; ++k) {
          value = mix(value, 40);
          kind.lock();
          table[value % 512] = mix(table[value % 512] + value, 200);
          kind.unlock();
        }
      });
  std::printf("%s: %llx\n", argv[2], static_cast<unsigned long long>(table[7]));
}
