// SPDX-License-Identifier: MIT
// Lets fork copy a process in which nothing is half changed. A thread enters before it changes shared state and leaves
// afterwards; the fork handler closes the gate, waits until it is quiet, and opens it after the fork.
//
// No lock is held while fork waits for others. Between our handler and the copy, fork waits for handlers that were
// registered before ours, for the lists of stdio, for the databases of names; a thread that holds one of those may be in the
// middle of a malloc. So the handler only closes the gate and waits until each thread inside has left. From then on no
// thread is let in. A refused thread does not wait for the fork's end either: it takes another way, or defers its work
// (alloc/fork_work.hpp).
//
//   Invariant: a thread is inside  <=>  it has set its mark, and saw no fork under way but its own afterwards.
//   Closed and quiet: no thread but the one that forks is inside, until open() or reset().
//
// A mark is a thread's own (a plain store), or shared by some (a read-modify-write). The marks and `forks_` are a store
// buffering pair; the fence of the threads that enter is free, and the one of close() makes them all execute one
// (membarrier). fence_alone() ends that for good: a fence each, and no system call. Any thread. enter and leave: a store and
// a load each; close: a system call.
#pragma once
#include <atomic>
#include <cstdint>
#include <type_traits>

#include "freehold/base/bits.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::sync {

struct ForkGateOrders {
  // Acquire: pairs with the release of open() and of leave(); what was changed before the fork is visible.
  static constexpr auto kEnter = std::memory_order_acquire;
  // Release: pairs with kLook; the thread that forks sees what was changed, whole.
  static constexpr auto kLeave = std::memory_order_release;
  static constexpr auto kLook = std::memory_order_acquire;
  // Release: pairs with kEnter; the copy was read before anybody changes what it shows.
  static constexpr auto kOpen = std::memory_order_release;
};

template <Atomics A, class Orders = ForkGateOrders, unsigned kSharedMarks = 16>
class ForkGate {
 public:
  using Mark = typename A::template atomic<std::uint32_t>;

  constexpr ForkGate() noexcept = default;

  // Not thread-safe; before the first enter(). Asks whether the system can fence other threads; if not, they fence.
  void init() noexcept {
    how_.store(A::may_fence_heavily() ? kForOthers : kAlone, std::memory_order_relaxed);  // relaxed: no other thread yet
  }

  // The system may refuse to fence other threads from now on, or end the process for it: each thread fences for itself.
  // Any thread, while others enter and close. Relaxed: between the two stores all threads fence, so a thread that closes
  // by the second one's rule sees who entered by the former.
  void fence_alone() noexcept {
    if (how_.load(std::memory_order_relaxed) == kAlone) return;
    how_.store(kBoth, std::memory_order_relaxed);
    if (heavy_fence()) how_.store(kAlone, std::memory_order_relaxed);
  }

  // The same where there is no other thread.
  void fence_alone_from_start() noexcept { how_.store(kAlone, std::memory_order_relaxed); }

  // For threads that have no mark of their own.
  [[nodiscard]] Mark& shared_mark(std::uint32_t thread) noexcept { return shared_[thread % kSharedMarks].mark; }

  // True: the caller is inside, until leave() with the same mark. False: another thread forks. `forks`: how many forks the
  // caller has under way itself, whose handlers may want memory.
  [[nodiscard, gnu::always_inline]] bool enter(Mark& own, std::uint32_t forks) noexcept {
    own.store(1, std::memory_order_relaxed);  // relaxed: the fences below and in close() order it
    fence();
    if (forks_.load(Orders::kEnter) == forks) [[likely]]
      return true;
    leave(own);
    return false;
  }
  void leave(Mark& own) noexcept { own.store(0, Orders::kLeave); }

  [[nodiscard]] bool enter_shared(Mark& mark, std::uint32_t forks) noexcept {
    mark.fetch_add(1, std::memory_order_relaxed);  // relaxed: as in enter()
    fence();
    if (forks_.load(Orders::kEnter) == forks) [[likely]]
      return true;
    leave_shared(mark);
    return false;
  }
  void leave_shared(Mark& mark) noexcept { mark.fetch_sub(1, Orders::kLeave); }

  // The calling thread is about to fork: refuses all others. Then the caller waits until every mark but its own is_quiet().
  void close() noexcept {
    forks_.fetch_add(1, std::memory_order_relaxed);  // relaxed: the fence orders it
    order_others();
  }
  // Orders what the caller wrote before the marks that it reads next: a thread whose mark is_quiet() then sees the former
  // once it enters again. False: the system refuses, and nothing is ordered.
  [[nodiscard]] bool fence_others() const noexcept {
    if (how_.load(std::memory_order_relaxed) == kAlone) {
      A::fence(std::memory_order_seq_cst);
      return true;
    }
    return heavy_fence();
  }
  // The same. Where the system refuses it waits instead: a CPU's stores are seen long before a millisecond has passed.
  void order_others() const noexcept {
    constexpr int kNaps = 20;  // of 50 us
    if (!fence_others())
      for (int i = 0; i < kNaps; ++i) A::yield();
  }
  // True if fence_others() fences all threads; else it fences the caller, as each thread does where it sets its mark.
  [[nodiscard]] bool fences_others() const noexcept { return how_.load(std::memory_order_relaxed) != kAlone; }
  [[nodiscard]] static bool is_quiet(const Mark& mark) noexcept { return mark.load(Orders::kLook) == 0; }
  [[nodiscard]] bool shared_marks_are_quiet() const noexcept {
    for (const SharedMark& shared : shared_)
      if (!is_quiet(shared.mark)) return false;
    return true;
  }
  // In the parent, afterwards. True: no other fork is under way.
  bool open() noexcept {
    const bool last = forks_.fetch_sub(1, Orders::kOpen) == 1;
    if (last) A::notify_all_shared(forks_);
    return last;
  }
  // In the child, whose only thread has `forks` others under way: of handlers of signals that came during one.
  void reset(std::uint32_t forks) noexcept {
    forks_.store(forks, std::memory_order_relaxed);  // relaxed: there is no other thread
    for (SharedMark& shared : shared_) shared.mark.store(0, std::memory_order_relaxed);
    if (how_.load(std::memory_order_relaxed) != kAlone) init();  // the child is a separate process
  }

  // Orders a mark that the caller has set before its later loads, for a thread that calls fence_others(): one that is fenced
  // before it sets the mark sees that it has to fence now.
  void fence() const noexcept {
    A::light_fence();
    if (how_.load(std::memory_order_relaxed) != kForOthers) [[unlikely]]
      A::fence(std::memory_order_seq_cst);
  }

  // Forks under way, in any thread. Relaxed: a glance, or ordered by DeferredList.
  [[nodiscard]] std::uint32_t forks() const noexcept { return forks_.load(std::memory_order_relaxed); }
  // A thread waits on this word (wait_shared) until it changes.
  [[nodiscard]] const Mark& word() const noexcept { return forks_; }

 private:
  // Says who fences: the thread that closes for all others, it and each of the others, or each for itself.
  enum : std::uint32_t { kForOthers, kBoth, kAlone };
  struct alignas(base::kCacheLine) SharedMark {
    Mark mark{0};
  };

  [[nodiscard]] static bool heavy_fence() noexcept {
    if constexpr (std::is_void_v<decltype(A::heavy_fence())>) {  // simulated: it cannot fail
      A::heavy_fence();
      return true;
    } else {
      return A::heavy_fence();
    }
  }
  alignas(base::kCacheLine) Mark forks_{0};
  typename A::template atomic<std::uint32_t> how_{kAlone};
  SharedMark shared_[kSharedMarks];
};

}  // namespace freehold::sync
