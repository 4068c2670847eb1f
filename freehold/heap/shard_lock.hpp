// SPDX-License-Identifier: MIT
// The lock of one shard of a private heap, biased towards the thread that uses the shard most.
//
// Any thread locks a shard by a flag, with one atomic exchange. A thread that locked it many times in a row becomes its
// owner, and enters by plain stores from then on. Another thread that wants the shard sets the flag, revokes the ownership
// and fences heavily: an owner that enters later sees that it no longer owns the shard, and one that entered before is seen
// inside. That is Dekker's protocol with the fence on one side only, as in BestPool's stealing.
//
//   Invariants: one thread at most is in the shard: it holds the flag, or it is the owner.
//               a shard has an owner only if no other thread has been inside since that thread became the owner.
//
// Any thread. Cost: for the owner two stores and two loads on the shard's line; otherwise one exchange and one store; a
// heavy fence (a system call) to revoke. It never waits: try_lock() fails if another thread is inside. Source: biased
// locking with asymmetric fences (Dice, Moir and Scherer, "Quickly reacquirable locks", 2003).
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::heap {

struct ShardLockOrders {
  // acquire: pairs with kUnlock; the changes of the thread that held the flag before are visible.
  static constexpr std::memory_order kLock = std::memory_order_acquire;
  // release: pairs with kLock.
  static constexpr std::memory_order kUnlock = std::memory_order_release;
  // release: pairs with kLook; the owner's changes of the shard are visible. Also where the owner turns back at once: a
  // store that is not a release would end what the last one released.
  static constexpr std::memory_order kLeave = std::memory_order_release;
  // acquire: pairs with kLeave.
  static constexpr std::memory_order kLook = std::memory_order_acquire;
  // Says whether each owner of a shard has a separate word (false: for a mutant).
  static constexpr bool kWordForEach = true;
};

template <sync::Atomics A, class Geometry, class Orders>
class alignas(base::kCacheLine) ShardLock {
  template <class T>
  using var = typename A::template var<T>;
  template <class T>
  using atomic = typename A::template atomic<T>;
  static constexpr unsigned kOwners = Geometry::kOwners;

 public:
  // An owner's word: 1 while that thread is inside.
  using Inside = atomic<std::uint8_t>;

  // Enters as the owner. Null: the calling thread does not own the shard; else the word that leave() wants.
  [[nodiscard]] Inside* try_enter() noexcept {
    const std::uintptr_t owner = owner_.load(std::memory_order_relaxed);  // relaxed: only our own value counts
    if (is_of(owner, this_thread())) [[likely]] {
      Inside& inside = inside_[Orders::kWordForEach ? owner % kOwners : 0];
      (void)inside.load(Orders::kLook);            // what the thread did whose mark we inherited
      inside.store(1, std::memory_order_relaxed);  // relaxed, both: the fences order them against revoke()
      A::light_fence();
      if (owner_.load(std::memory_order_relaxed) == owner) [[likely]]
        return &inside;
      inside.store(0, Orders::kLeave);
    }
    return nullptr;
  }
  static void leave(Inside& inside) noexcept { inside.store(0, Orders::kLeave); }

  // False: another thread is inside, or on its way in.
  [[nodiscard]] bool try_lock() noexcept {
    if (!try_set_flag()) return false;
    if (revoke()) A::heavy_fence();
    if (!is_entered()) [[likely]]
      return true;
    unlock();
    return false;
  }
  void unlock() noexcept { flag_.store(0, Orders::kUnlock); }

  // Counts a try_lock() of the caller, which becomes the owner after enough of them in a row. Pre: locked by the caller.
  void count_lock() noexcept {
    const std::uintptr_t me = this_thread();
    if (last_.load() != me) {
      last_.store(me);
      in_a_row_.store(0);
    }
    in_a_row_.store(in_a_row_.load() + 1);
    if (in_a_row_.load() >= locks_to_own_.load()) make_owner(me);
  }

  // The steps of try_lock(), for those that lock many shards with one fence. try_set_flag() keeps all other threads off but
  // the owner. revoke() ends the ownership of another thread, and returns whether there was one: then a heavy fence is due.
  // After that, is_entered() tells whether an owner is still inside.
  [[nodiscard]] bool try_set_flag() noexcept {
    // relaxed: a glance, which spares the exchange where it would fail.
    return flag_.load(std::memory_order_relaxed) == 0 && flag_.exchange(1, Orders::kLock) == 0;
  }
  [[nodiscard]] bool revoke() noexcept {
    const std::uintptr_t owner = owner_.load(std::memory_order_relaxed);  // relaxed: written by the thread with the flag
    if (owner == 0 || is_of(owner, this_thread())) return false;
    owner_.store(0, std::memory_order_relaxed);  // relaxed: fenced
    in_a_row_.store(0);
    locks_to_own_.store(std::min(2 * locks_to_own_.load(), kMaxLocksToOwn));
    return true;
  }
  [[nodiscard]] bool is_entered() const noexcept {
    bool entered = false;
    for (const Inside& inside : inside_) entered |= inside.load(Orders::kLook) != 0;
    return entered;
  }

  // In a child of fork, whose other threads are gone: an owner that was about to find out that it was revoked may have left
  // its word set. Where it still runs it clears the word itself, now or later. Pre: locked by the caller.
  void clear_words() noexcept {
    for (Inside& inside : inside_) inside.store(0, Orders::kLeave);
  }

 private:
  // Its address says which thread it is, to all shared objects and in a child of fork. A new thread may have that of one
  // that has ended, and inherits its ownerships then.
  struct alignas(kOwners) ThreadMark {
    std::byte room[kOwners];
  };
  // Locks in a row that make an owner after the last one was revoked, at most; at first Geometry::kLocksToOwn.
  static constexpr std::uint32_t kMaxLocksToOwn = 4096;

  [[nodiscard]] static std::uintptr_t this_thread() noexcept {
    return reinterpret_cast<std::uintptr_t>(&A::template per_thread<ThreadMark>());
  }
  [[nodiscard]] static bool is_of(std::uintptr_t owner, std::uintptr_t thread) noexcept { return owner - thread < kOwners; }

  // Makes the caller, which has locked the shard, its owner, if there is a word for it and the system has the fence.
  void make_owner(std::uintptr_t me) noexcept {
    in_a_row_.store(0);  // if it cannot be: so many locks until it is looked at again
    for (unsigned word = 0; word < kOwners; ++word) {
      if (const std::uintptr_t thread = owners_[word].load(); thread != 0 && thread != me) continue;
      if (!A::may_fence_heavily()) return;
      owners_[word].store(me);
      owner_.store(me + word, std::memory_order_relaxed);  // relaxed: others see it through the flag
      return;
    }
  }

  atomic<std::uint32_t> flag_{0};
  Inside inside_[kOwners]{};
  atomic<std::uintptr_t> owner_{0};  // a thread, and the number of its word; 0: none. Changed by the thread with the flag
  // These belong to the thread with the flag:
  var<std::uintptr_t> owners_[kOwners]{};  // threads, whose word each is
  var<std::uintptr_t> last_{0};            // the thread that locked last; how often in a row
  var<std::uint32_t> in_a_row_{0};
  var<std::uint32_t> locks_to_own_{Geometry::kLocksToOwn};
};

}  // namespace freehold::heap
