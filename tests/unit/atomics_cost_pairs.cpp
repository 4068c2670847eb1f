// SPDX-License-Identifier: MIT
// Pairs of functions that must compile to the same instructions: policy_x as Freehold writes its algorithms, over
// sync::NativeAtomics, and hand_x as one would write it with std::atomic, plain data and system calls alone.
// other_x must not: they show that the comparison can fail.
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>

#include "freehold/sync/atomics.hpp"
#include "freehold/sync/lock.hpp"

#define FUNCTION extern "C" [[gnu::visibility("default")]]

using A = freehold::sync::NativeAtomics;
using Word = A::atomic<std::uint64_t>;
using HandWord = std::atomic<std::uint64_t>;

// An algorithm as the engine's are: a template over the policy.
template <freehold::sync::Atomics Policy>
struct Stack {
  struct Node {
    typename Policy::template atomic<Node*> next;
    typename Policy::template var<std::uint64_t> payload;
  };
  typename Policy::template atomic<Node*> head;

  void push(Node* node, std::uint64_t payload) noexcept {
    node->payload.store(payload);
    Node* top = head.load(std::memory_order_relaxed);
    do {
      node->next.store(top, std::memory_order_relaxed);
    } while (!head.compare_exchange_weak(top, node, std::memory_order_release, std::memory_order_relaxed));
  }
  std::uint64_t drain() noexcept {
    std::uint64_t sum = 0;
    for (Node* node = head.exchange(nullptr, std::memory_order_acquire); node != nullptr;
         node = node->next.load(std::memory_order_relaxed))
      sum += node->payload.load();
    return sum;
  }
};
struct HandNode {
  std::atomic<HandNode*> next;
  std::uint64_t payload;
};

FUNCTION void policy_push(Stack<A>& stack, Stack<A>::Node* node, std::uint64_t payload) { stack.push(node, payload); }
FUNCTION void hand_push(std::atomic<HandNode*>& head, HandNode* node, std::uint64_t payload) {
  node->payload = payload;
  HandNode* top = head.load(std::memory_order_relaxed);
  do {
    node->next.store(top, std::memory_order_relaxed);
  } while (!head.compare_exchange_weak(top, node, std::memory_order_release, std::memory_order_relaxed));
}

FUNCTION std::uint64_t policy_drain(Stack<A>& stack) { return stack.drain(); }
FUNCTION std::uint64_t hand_drain(std::atomic<HandNode*>& head) {
  std::uint64_t sum = 0;
  for (HandNode* node = head.exchange(nullptr, std::memory_order_acquire); node != nullptr;
       node = node->next.load(std::memory_order_relaxed))
    sum += node->payload;
  return sum;
}

FUNCTION std::uint64_t policy_words(Word& a, Word& b) {
  const std::uint64_t all = a.exchange(0, std::memory_order_acquire);
  b.fetch_or(all, std::memory_order_seq_cst);
  return b.fetch_add(1, std::memory_order_acq_rel) + a.load(std::memory_order_seq_cst);
}
FUNCTION std::uint64_t hand_words(HandWord& a, HandWord& b) {
  const std::uint64_t all = a.exchange(0, std::memory_order_acquire);
  b.fetch_or(all, std::memory_order_seq_cst);
  return b.fetch_add(1, std::memory_order_acq_rel) + a.load(std::memory_order_seq_cst);
}

FUNCTION std::uint64_t policy_vars(A::var<std::uint64_t>* vars, std::uint64_t n) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    sum += vars[i].load();
    vars[i].store(sum);
  }
  return sum;
}
FUNCTION std::uint64_t hand_vars(std::uint64_t* vars, std::uint64_t n) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    sum += vars[i];
    vars[i] = sum;
  }
  return sum;
}

FUNCTION void policy_fences(Word& a) {
  a.store(1, std::memory_order_relaxed);
  A::fence(std::memory_order_release);
  a.store(2, std::memory_order_relaxed);
  A::fence(std::memory_order_seq_cst);
  a.store(3, std::memory_order_release);
}
FUNCTION void hand_fences(HandWord& a) {
  a.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  a.store(2, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  a.store(3, std::memory_order_release);
}

FUNCTION void policy_spin(Word& a) {
  for (std::uint64_t left = A::decide<std::uint64_t>(100, 1); left > 0 && a.load(std::memory_order_acquire) == 0; --left)
    A::pause();
}
FUNCTION void hand_spin(HandWord& a) {
  for (std::uint64_t left = 100; left > 0 && a.load(std::memory_order_acquire) == 0; --left) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb");
#endif
  }
}

FUNCTION unsigned policy_cpu() { return A::cpu_id(); }
FUNCTION unsigned hand_cpu() { return static_cast<unsigned>(sched_getcpu()); }

FUNCTION void policy_wait(std::atomic<std::uint32_t>& a) { A::wait(a, 7); }
FUNCTION void hand_wait(std::uint32_t* a) {
  const int saved = errno;
  syscall(SYS_futex, a, FUTEX_WAIT_PRIVATE, std::uint32_t{7}, nullptr, nullptr, 0);
  errno = saved;
}
FUNCTION void policy_notify(std::atomic<std::uint32_t>& a) { A::notify_all(a); }
FUNCTION void hand_notify(std::uint32_t* a) {
  const int saved = errno;
  syscall(SYS_futex, a, FUTEX_WAKE_PRIVATE, std::uint32_t{INT_MAX}, nullptr, nullptr, 0);
  errno = saved;
}

// The mutex's short way.
FUNCTION bool policy_lock(freehold::sync::Mutex<A>& mutex) { return mutex.try_lock(); }
FUNCTION bool hand_lock(std::atomic<std::uint32_t>& state) {
  std::uint32_t expected = 0;
  return state.compare_exchange_strong(expected, 1, std::memory_order_acquire, std::memory_order_relaxed);
}

// One order, one operation and one operand that differ.
FUNCTION void other_fences(HandWord& a) {
  a.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  a.store(2, std::memory_order_relaxed);
  a.store(3, std::memory_order_release);
}
FUNCTION std::uint64_t other_words(HandWord& a, HandWord& b) {
  const std::uint64_t all = a.exchange(0, std::memory_order_acquire);
  b.fetch_and(all, std::memory_order_seq_cst);
  return b.fetch_add(1, std::memory_order_acq_rel) + a.load(std::memory_order_seq_cst);
}
FUNCTION void other_wait(std::uint32_t* a) {
  const int saved = errno;
  syscall(SYS_futex, a, FUTEX_WAIT_PRIVATE, std::uint32_t{8}, nullptr, nullptr, 0);
  errno = saved;
}
