// SPDX-License-Identifier: MIT
// The list in which slots wait that were freed by another thread than their owner, until the owner takes them back.
// OwnerPages has one for each owner, behind the concept RemoteFreeList:
//   any thread   push(first, last, count)   a batch of slots, linked through their first word
//   the owner    drain()                    all of them at once
//   the owner    close()                    when its thread exits: later pushes fail, and the caller deals with the slots
// Two implementations. MutexPendingList is that of the thread-local allocator's author: one mutex per owner, a list, and a
// count that the owner reads without the mutex. LockFreeList is one word: many pushers, one taker. Since the taker takes
// everything, there is no ABA. Invariant: a slot is in the list from the push that returned true until the one drain() or
// close() that returned it. Cost of a push: two read-modify-writes on one line with the mutex, one without, however long the
// batch. Sources: K. Knizhnik, "thread_alloc" (pending requests under the owner's critical section); Treiber 1986 with a
// taker of all.
#pragma once
#include <concepts>
#include <cstdint>

#include "freehold/sync/atomics.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::thread_alloc {

// The first word of a free slot.
template <sync::Atomics A>
struct FreeNode {
  typename A::template var<FreeNode*> next;
};

template <class R>
concept RemoteFreeList = requires(R& list, const R& held, typename R::Node* node, std::uint32_t count) {
  // Adds the `count` slots from `first` to `last`, linked; last->next is overwritten. False, and nothing done but to that
  // link, once the list is closed; the caller then sees everything the owner wrote before close(). Any thread.
  { list.push(node, node, count) } -> std::same_as<bool>;
  // Takes all slots, the last one linked to null; null if there are none. May miss a push that is under way. Owner.
  { list.drain() } -> std::same_as<typename R::Node*>;
  // Takes all slots and makes every later push fail. Owner, once.
  { list.close() } -> std::same_as<typename R::Node*>;
  // Makes a closed list usable by a new owner. Pre: no other thread can know the list now.
  list.reopen();
  // A hint: whether draining is worth it, because about `count` slots or more wait. Owner.
  { held.ready(count) } -> std::same_as<bool>;
  // How often a push had to wait or to try again. Any thread.
  { held.contention() } -> std::same_as<std::uint32_t>;
  // Around fork: no push or drain of another thread is half done in between.
  list.before_fork();
  list.after_fork();
};

// The author's list. Linearisation points: each call's hold of the mutex.
template <sync::Atomics A, class Lock = sync::Mutex<A, sync::CountWaits<A>>>
class MutexPendingList {
 public:
  using Node = FreeNode<A>;

  constexpr MutexPendingList() noexcept = default;

  bool push(Node* first, Node* last, std::uint32_t count) noexcept {
    const sync::Guard guard(lock_);
    if (closed_.load()) return false;
    last->next.store(head_.load());
    head_.store(first);
    // relaxed: a hint for ready(); the slots themselves are published by the lock.
    count_.store(count_.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
    return true;
  }

  [[nodiscard]] Node* drain() noexcept {
    // relaxed: a push that is missed here is found at the next drain; close() does not ask.
    return count_.load(std::memory_order_relaxed) == 0 ? nullptr : take(false);
  }

  [[nodiscard]] Node* close() noexcept { return take(true); }
  void reopen() noexcept { closed_.store(false); }
  // relaxed: a hint.
  [[nodiscard]] bool ready(std::uint32_t count) const noexcept { return count_.load(std::memory_order_relaxed) >= count; }
  [[nodiscard]] std::uint32_t contention() const noexcept { return lock_.waits().count(); }
  void before_fork() noexcept { lock_.lock(); }
  void after_fork() noexcept { lock_.unlock(); }

 private:
  Node* take(bool close) noexcept {
    const sync::Guard guard(lock_);
    Node* const taken = head_.load();
    head_.store(nullptr);
    count_.store(0, std::memory_order_relaxed);  // relaxed: as in push
    if (close) closed_.store(true);
    return taken;
  }

  // All under lock_, but count_ is also read without it: count_ = length of the list whenever the lock is free.
  Lock lock_;
  typename A::template atomic<std::uint32_t> count_{0};
  typename A::template var<Node*> head_{nullptr};
  typename A::template var<bool> closed_{false};
};

struct LockFreeListOrders {
  // release: pairs with kTake; publishes the links of the batch (and what its slots' last users did). A later push continues
  // the release sequence, so the one acquire of the taker covers every batch in the list.
  static constexpr std::memory_order kPush = std::memory_order_release;
  // acquire: pairs with the release of kClose; a thread that finds the list closed goes on with counts that the owner wrote.
  static constexpr std::memory_order kSeeClosed = std::memory_order_acquire;
  // acquire: pairs with kPush.
  static constexpr std::memory_order kTake = std::memory_order_acquire;
  // acquire: pairs with kPush; release: pairs with kSeeClosed.
  static constexpr std::memory_order kClose = std::memory_order_acq_rel;
};

// The lock-free list: a word that is 0, a slot's address, or kClosed. Linearisation points: push, the successful exchange or
// the load that saw kClosed; drain and close, their exchange, or drain's load of 0.
template <sync::Atomics A, class Orders = LockFreeListOrders>
class LockFreeList {
 public:
  using Node = FreeNode<A>;

  constexpr LockFreeList() noexcept = default;

  // Lock-free: a retry means that another push or a drain succeeded.
  bool push(Node* first, Node* last, std::uint32_t) noexcept {
    std::uintptr_t head = head_.load(Orders::kSeeClosed);
    for (;;) {
      if (head == kClosed) return false;
      last->next.store(reinterpret_cast<Node*>(head));
      if (head_.compare_exchange_weak(head, reinterpret_cast<std::uintptr_t>(first), Orders::kPush, Orders::kSeeClosed))
        return true;
      retries_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a statistic
    }
  }

  [[nodiscard]] Node* drain() noexcept {
    // relaxed: avoids a write of the line when there is nothing; a push that is missed is found at the next drain.
    if (head_.load(std::memory_order_relaxed) == 0) return nullptr;
    return reinterpret_cast<Node*>(head_.exchange(0, Orders::kTake));
  }

  [[nodiscard]] Node* close() noexcept { return reinterpret_cast<Node*>(head_.exchange(kClosed, Orders::kClose)); }
  // relaxed: no other thread knows the list; one that learns of it does so through a slot that the new owner hands out.
  void reopen() noexcept { head_.store(0, std::memory_order_relaxed); }
  // relaxed: a hint. The length is unknown: anything is worth taking, since taking is one exchange.
  [[nodiscard]] bool ready(std::uint32_t) const noexcept { return head_.load(std::memory_order_relaxed) != 0; }
  // relaxed: a statistic.
  [[nodiscard]] std::uint32_t contention() const noexcept { return retries_.load(std::memory_order_relaxed); }
  void before_fork() noexcept {}
  void after_fork() noexcept {}

 private:
  static constexpr std::uintptr_t kClosed = 1;  // no slot's address: those are multiples of 16

  typename A::template atomic<std::uintptr_t> head_{0};
  typename A::template atomic<std::uint32_t> retries_{0};
};

static_assert(RemoteFreeList<MutexPendingList<sync::NativeAtomics>>);
static_assert(RemoteFreeList<LockFreeList<sync::NativeAtomics>>);

}  // namespace freehold::thread_alloc
