// SPDX-License-Identifier: MIT
// Does: threads sum into a shared record under a lock that the program wrote itself. The lock is a test-and-set spin lock, a
//       ticket lock that yields, or a futex by hand (Drepper's second mutex). No pthread_mutex is involved.
// Why:  by construction: nothing is allocated after the start, four fifths of the work are done inside the lock.
// Case own_spin_handmade: {n} spin 2400000
//   Truth: own-lock
//   Right: own-lock
// Case own_ticket_yield: {n} ticket 1200000
//   Truth: own-lock
//   Right: own-lock
// Case own_futex_handmade: {n} futex 2400000
//   Truth: own-lock
//   Right: own-lock
//   Seen: strace -f -c of a quarter of it: 146 futex calls, no mmap, madvise or brk besides start-up
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "tests/doctor/blind/programs/common.h"

namespace {

struct Spin {
  std::atomic<int> held{0};
  void lock() {
    while (held.exchange(1, std::memory_order_acquire))
      while (held.load(std::memory_order_relaxed)) __builtin_ia32_pause();
  }
  void unlock() { held.store(0, std::memory_order_release); }
};

struct Ticket {
  std::atomic<unsigned> next{0}, serving{0};
  void lock() {
    const unsigned mine = next.fetch_add(1);
    while (serving.load(std::memory_order_acquire) != mine) sched_yield();
  }
  void unlock() { serving.fetch_add(1, std::memory_order_release); }
};

struct Futex {
  std::atomic<int> state{0};  // 0 free, 1 held, 2 held and waited for
  void lock() {
    int seen = 0;
    if (state.compare_exchange_strong(seen, 1)) return;
    if (seen != 2) seen = state.exchange(2);
    while (seen != 0) {
      syscall(SYS_futex, &state, FUTEX_WAIT_PRIVATE, 2, nullptr, nullptr, 0);
      seen = state.exchange(2);
    }
  }
  void unlock() {
    if (state.exchange(0) == 2) syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
};

template <class Lock>
std::uint64_t run(int threads, long updates) {
  alignas(128) static Lock lock;
  alignas(128) static std::uint64_t record = 1;
  in_threads(threads, [&](int i) {
    std::uint64_t value = 77 + i;
    for (long k = 0; k < updates / threads; ++k) {
      value = mix(value, 40);
      lock.lock();
      record = mix(record + value, 200);
      lock.unlock();
    }
  });
  return record;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = std::atoi(argv[1]);
  const long updates = std::atol(argv[3]);
  const auto value = !std::strcmp(argv[2], "spin")     ? run<Spin>(threads, updates)
                     : !std::strcmp(argv[2], "ticket") ? run<Ticket>(threads, updates)
                                                       : run<Futex>(threads, updates);
  std::printf("%llx\n", static_cast<unsigned long long>(value));
}
