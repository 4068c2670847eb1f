// SPDX-License-Identifier: MIT
// The free slots of a private heap that any thread uses: shards, each with free lists of every class, over central free
// lists behind a lock.
//
//   const LockedShard locked = shards.try_lock_shard();     // none: shards.allocate_centrally(c)
//   void* slot = shards.pop(locked.shard->bins[c], c);      // null: shards.allocate_refilling(locked, c)
//   shards.unlock(locked);
//   if (shards.push(c, slot)) shards.notify_waiters();
//
// A thread takes from the shard of its number and gives back to it; each shard has its lock (shard_lock.hpp). There are more
// shards than CPUs: a thread that is preempted inside holds up only the threads of the same shard. Those try the next
// shards, and at last the central lists, whose lock can sleep: so no thread ever spins on one that does not run.
//
// Free slots have no home: they stay in the shard of the thread that freed them, and travel as whole batches of one length,
// in constant time each way (batch_bin.hpp). The batches that a shard sets aside lie in its depot. They are everybody's,
// under the central lock, but come back to the same shard first: their lines are in that CPU's cache.
// heap_shards_all.hpp has the operations that lock everything.
//
//   Invariants: those of BatchBin;
//               slots of class c: live (summed over all shards and the central lists) + free ones + uncut ones == those of
//               its runs; `batches` counts those in all depots.
//
// Locks, in this order: the shards' by number, the central one, then the engine's. A thread that holds a shard asks for no
// other one.
// Any thread. Cost: that of the shard's lock; the central lock once in batch_slots(c) operations.
// Source: batches through a depot from Bonwick and Adams, "Magazines and Vmem", 2001.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "freehold/base/bits.hpp"
#include "freehold/heap/batch_bin.hpp"
#include "freehold/heap/bins.hpp"
#include "freehold/heap/heap_options.hpp"
#include "freehold/heap/shard_lock.hpp"
#include "freehold/heap/slabs.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::heap {

struct PrivateHeapOrders : ShardLockOrders {
  // release: publishes a shard, or the core, to a thread that loads the pointer with kFind.
  static constexpr std::memory_order kPublish = std::memory_order_release;
  static constexpr std::memory_order kFind = std::memory_order_acquire;
  // acquire and release: of a part of a heap that has ended, what was done with other blocks comes before it goes back.
  static constexpr std::memory_order kLeavePart = std::memory_order_acq_rel;
};

template <sync::Atomics A, class Geometry, SlabSource Source, class Orders>
class HeapShards {
  template <class T>
  using var = typename A::template var<T>;
  template <class T>
  using atomic = typename A::template atomic<T>;
  using Lock = ShardLock<A, Geometry, Orders>;
  using Free = FreeSlot<A>;
  using CentralBin = typename Bins<A, Geometry>::Bin;
  template <class Heap>
  friend struct ScopedHeaps;

 public:
  using Classes = typename Geometry::Classes;
  using SlabsType = Slabs<A, Geometry, Source>;
  using SlabType = typename SlabsType::SlabType;

  using Bin = BatchBin<A, Geometry>;
  struct Shard {
    Lock lock;
    Bin bins[Classes::kCount];
  };
  // A shard that no other thread works on until unlock(). Null: no shard yet, or those that were tried are locked.
  struct LockedShard {
    Shard* shard = nullptr;
    typename Lock::Inside* inside = nullptr;  // the owner's word; null: the flag is held
  };

  HeapShards(void* heap, std::size_t limit_bytes, Source source) noexcept : slabs_(heap, limit_bytes, source) {}

  [[nodiscard]] SlabsType& slabs() noexcept { return slabs_; }
  [[nodiscard]] const SlabsType& slabs() const noexcept { return slabs_; }
  // The central lock: of the central lists, the depots, and the slabs.
  [[nodiscard]] sync::Mutex<A>& lock() noexcept { return lock_; }
  [[nodiscard]] bool is_started() const noexcept { return core_.load(std::memory_order_relaxed) != nullptr; }
  // Operations that found a shard locked by another thread.
  [[nodiscard]] std::uint64_t conflicts() const noexcept { return conflicts_.load(std::memory_order_relaxed); }

  // ---- fast paths: inlined by order, since Clang else makes three calls of a pair (1.5 times the time)

  [[nodiscard, gnu::always_inline]] LockedShard try_lock_shard() noexcept {
    Core* core = core_.load(Orders::kFind);
    if (core == nullptr) [[unlikely]] {
      core = make_core();
      if (core == nullptr) return {};
    }
    const unsigned i = Geometry::template spread<A>() & (core->shard_count - 1);
    Shard* shard = core->shards[i].load(Orders::kFind);
    if (shard == nullptr) [[unlikely]] {
      shard = make_shard(i);
      if (shard == nullptr) return {};
    }
    if (auto* const inside = shard->lock.try_enter(); inside != nullptr) [[likely]]
      return {shard, inside};
    return try_lock_home_shard(*core, i, *shard);
  }
  static void unlock(const LockedShard& locked) noexcept {
    if (locked.inside != nullptr) [[likely]]
      Lock::leave(*locked.inside);
    else
      locked.shard->lock.unlock();
  }
  // A slot, or null. Pre: the bin is the caller's.
  [[nodiscard]] void* pop(Bin& bin, unsigned c) noexcept { return bin.pop(c, slabs_); }
  // Takes a slot back. Returns whether a thread waits for room, which notify_waiters() then wakes.
  // A waiter has counted itself among the waiters before it looked into the shards, each under its lock. If it did not see
  // what is given back here, its look came before, and the lock that it released shows it to us: then the count of
  // notify_waiters() changes after the waiter read it, and the waiter does not sleep, or is woken.
  [[nodiscard, gnu::always_inline]] bool push(unsigned c, void* block) noexcept {
    if (const LockedShard locked = try_lock_shard(); locked.shard != nullptr) [[likely]] {
      push_into(locked.shard->bins[c], c, static_cast<Free*>(block));
      const bool awaited = is_awaited();
      unlock(locked);
      return awaited;
    }
    const sync::Guard guard(lock_);
    core_.load(std::memory_order_relaxed)->central.push_watched(c, block, slabs_);
    return is_awaited();
  }

  // ---- refills

  // A slot for a thread whose bin was empty, from a batch, loose slots or a run; unlocks the shard. Null: the central lists
  // have none, and no pages are to be had.
  [[nodiscard]] void* allocate_refilling(const LockedShard& locked, unsigned c) noexcept {
    Bin& bin = locked.shard->bins[c];
    bool due = false;
    void* slot = nullptr;
    if (refill(bin, c, due)) slot = pop(bin, c);
    unlock(locked);
    if (slot != nullptr && due) reclaim_if_quiet();
    return slot;
  }
  // A slot where no shard is to be had; null as above.
  [[nodiscard]] void* allocate_centrally(unsigned c) noexcept {
    const sync::Guard guard(lock_);
    if (!start()) return nullptr;
    Core& core = *core_.load(std::memory_order_relaxed);
    auto& bin = core.central.bins[c];
    if (bin.free.load() == nullptr) bin.free.store(take_batch(core, nullptr, c));
    void* const slot = core.central.pop_watched(c, slabs_);
    return slot == nullptr && take_run(bin, c, 1) ? bin.cut(Classes::slot_bytes(c)) : slot;
  }
  // Makes the core. False: there is no memory, or none is to be made (checked mode). Pre: the central lock is held.
  [[nodiscard]] bool start() noexcept {
    if (is_started()) return true;
    if (slabs_.is_checked()) return false;
    void* const room = slabs_.start(sizeof(Core));
    if (room == nullptr) return false;
    core_.store(::new (room) Core{}, Orders::kPublish);
    return true;
  }

  // ---- with everything locked

  // Holds every lock of the heap.
  class [[nodiscard]] All {
   public:
    explicit All(HeapShards& shards) noexcept : shards_(shards), locked_(shards.lock_all()) {}
    ~All() { shards_.unlock_all(locked_); }
    All(const All&) = delete;
    All& operator=(const All&) = delete;

   private:
    HeapShards& shards_;
    std::uint64_t locked_;
  };
  // Locks every shard and the central lists; returns the shards, a bit each.
  [[nodiscard]] std::uint64_t lock_all() noexcept;
  void unlock_all(std::uint64_t locked) noexcept;
  // See ShardLock::clear_words().
  void clear_words(std::uint64_t locked) noexcept;

  // The rest: Pre: everything is locked.

  // A slot of class c, if there is one anywhere, or pages for it once free ones are found. Null: neither.
  [[nodiscard]] void* find_slot(unsigned c) noexcept;
  // Gives free pages back to the slabs, and wholly free slabs to the source; returns the bytes of the latter.
  // Pre: is_started().
  std::size_t reclaim() noexcept;
  // Hands what has blocks in use to `ended`, and gives the rest back. Pre: the caller is alone, and no thread comes after
  // it.
  template <class Ended>
  void hand_over(Ended& ended, const HeapStats& last) noexcept;
  // Ends every block. Returns whether a thread waits for room.
  [[nodiscard]] bool release_all() noexcept;
  void add_live(HeapStats& stats) noexcept;
  // The places of all figures, from `heap` on.
  void add_to(LiveHeapLayout& layout, const void* heap) const noexcept;
  void check_invariants() noexcept;

  // ---- waiting for room

  // Pre: the caller has locked what it gives back to.
  [[nodiscard]] bool is_awaited() const noexcept {
    return waiters_.load(std::memory_order_relaxed) != 0;  // relaxed: the locks order it, see push()
  }
  // relaxed, both: the shards' locks order it, see push(); a thread that sees the end late wakes no other.
  void add_waiter() noexcept { waiters_.fetch_add(1, std::memory_order_relaxed); }
  void remove_waiter() noexcept { waiters_.fetch_sub(1, std::memory_order_relaxed); }
  // How often something was given back for waiters; wait_for_room(n) returns when that is n no more.
  [[nodiscard]] std::uint32_t given() const noexcept {
    return given_.load(std::memory_order_relaxed);  // relaxed: compared by the kernel, see push()
  }
  void wait_for_room(std::uint32_t given) noexcept { A::wait(given_, given); }
  [[gnu::noinline]] void notify_waiters() noexcept {
    given_.fetch_add(1, std::memory_order_relaxed);  // relaxed: the lock under which the waiter looks again publishes
    A::notify_all(given_);
  }

 private:
  static constexpr unsigned kMaxShards = 64;  // a bit each
  // Shards that are tried before the central lists.
  static constexpr unsigned kTries = 3;
  // Free slots are looked through for whole pages when the heap has grown beyond this, and by a half since the last look.
  static constexpr std::size_t kReclaimBytes = std::size_t{1} << 20;

  // Made with the first block, at the beginning of the first slab.
  struct Core {
    const unsigned shard_count = Geometry::shards();  // a power of two
    atomic<Shard*> shards[kMaxShards]{};
    alignas(base::kCacheLine) Bins<A, Geometry> central;
    var<std::uint32_t> batches[Classes::kCount]{};  // in the shards' depots
  };

  // ---- locks

  [[gnu::noinline]] LockedShard try_lock_home_shard(Core& core, unsigned i, Shard& shard) noexcept {
    if (!shard.lock.try_lock()) return try_lock_other_shard(core, i, core.shard_count);
    shard.lock.count_lock();
    return {&shard, nullptr};
  }
  [[nodiscard]] LockedShard try_lock_other_shard(Core& core, unsigned i, unsigned shards) noexcept {
    conflicts_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a statistic, it publishes nothing
    for (unsigned tries = 1; tries < kTries && tries < shards; ++tries) {
      if (++i == shards) i = 0;
      Shard* const shard = core.shards[i].load(Orders::kFind);
      if (shard != nullptr && shard->lock.try_lock()) return {shard, nullptr};
    }
    return {};
  }
  [[gnu::noinline]] Shard* make_shard(unsigned i) noexcept {
    const sync::Guard guard(lock_);
    auto& place = core_.load(std::memory_order_relaxed)->shards[i];  // relaxed: under the lock that it is written under
    if (Shard* const made = place.load(std::memory_order_relaxed); made != nullptr) return made;
    void* const room = slabs_.take_internal(sizeof(Shard));
    if (room == nullptr) return nullptr;
    auto* const shard = ::new (room) Shard;
    place.store(shard, Orders::kPublish);
    return shard;
  }
  [[gnu::noinline]] Core* make_core() noexcept {
    const sync::Guard guard(lock_);
    return start() ? core_.load(std::memory_order_relaxed) : nullptr;
  }

  [[nodiscard]] std::uint64_t lock_shards() noexcept;
  [[nodiscard]] static Shard& shard_at(Core& core, unsigned i) noexcept {
    return *core.shards[i].load(std::memory_order_relaxed);  // relaxed: found before
  }
  // Looks for free pages, unless a shard is locked: the thread that locked it may not run, and all others would wait for it.
  void reclaim_if_quiet() noexcept;
  // Pre: the central lock is held.
  [[nodiscard]] std::uint64_t made_shards() const noexcept {
    Core* const core = core_.load(std::memory_order_relaxed);
    std::uint64_t made = 0;
    for (unsigned i = 0; core != nullptr && i < core->shard_count; ++i)
      if (core->shards[i].load(std::memory_order_relaxed) != nullptr) made |= base::bit(i);
    return made;
  }
  // Pre: everything is locked.
  template <class F>
  void for_each_shard(const F& f) noexcept {
    for (std::uint64_t made = made_shards(); made != 0; made &= made - 1)
      f(*core_.load(std::memory_order_relaxed)->shards[base::lowest_bit(made)].load(std::memory_order_relaxed));
  }

  // ---- bins

  // A batch, loose slots, or a run. `due`: so much is in use that it is time to look for pages that are wholly free.
  [[nodiscard]] bool refill(Bin& bin, unsigned c, bool& due) noexcept {
    if (bin.fill_from_spare(c)) return true;
    const sync::Guard guard(lock_);
    Core& core = *core_.load(std::memory_order_relaxed);
    if (Free* const batch = take_batch(core, &bin, c); batch != nullptr) {
      bin.fill(batch, c);
      return true;
    }
    if (bin.fill_from(core.central.bins[c].free, c, slabs_)) return true;
    due = slabs_.used_bytes() >= reclaim_from_bytes_.load();
    if (due) reclaim_from_bytes_.store(slabs_.used_bytes() + slabs_.used_bytes() / 8);  // unless a reclaim says otherwise
    if (!take_run(bin, c, bin.pages.load())) return false;
    bin.pages.store(std::min(2 * bin.pages.load(), SlabType::kPages));  // the more it takes, the more it gets
    return true;
  }
  // A batch out of the depot of `own`, which may be null, or of another shard's; null: no batch.
  // Pre: the central lock is held.
  [[nodiscard]] Free* take_batch(Core& core, Bin* own, unsigned c) noexcept {
    if (core.batches[c].load() == 0) return nullptr;
    Bin* from = own;
    for (std::uint64_t made = made_shards(); from == nullptr || from->depot.load() == nullptr; made &= made - 1)
      from = &core.shards[base::lowest_bit(made)].load(std::memory_order_relaxed)->bins[c];  // relaxed: under the lock
    core.batches[c].store(core.batches[c].load() - 1);
    return from->take_batch(slabs_);
  }
  // A run for class c, of at most so many pages. Pre: the central lock is held.
  [[nodiscard]] bool take_run(CentralBin& bin, unsigned c, unsigned pages) noexcept {
    const auto run = slabs_.take_pages(c, pages);
    if (run.begin == nullptr) return false;
    bin.next.store(run.begin);
    bin.end.store(run.end);
    return true;
  }
  [[gnu::always_inline]] void push_into(Bin& bin, unsigned c, Free* slot) noexcept {
    if (bin.count.load() == Bin::batch_slots(c)) [[unlikely]]
      set_batch_aside(bin, c);
    bin.push(slot, slabs_);
  }
  [[gnu::noinline]] void set_batch_aside(Bin& bin, unsigned c) noexcept {
    if (Free* const spare = bin.spare.load(); spare != nullptr) {
      const sync::Guard guard(lock_);
      auto& batches = core_.load(std::memory_order_relaxed)->batches[c];  // relaxed: we have a shard
      bin.put_batch(spare, slabs_);
      batches.store(batches.load() + 1);
    }
    bin.set_batch_aside();
  }
  // Makes all free slots loose: they lie in the central lists. Pre: everything is locked.
  void collect() noexcept;
  // f(list, bumps) as Slabs::reclaim() wants them. Pre: collect().
  template <class F>
  auto with_free_slots(const F& f) noexcept;

  // Written seldom.
  atomic<Core*> core_{nullptr};
  atomic<std::uint32_t> waiters_{0};  // threads that wait for room
  SlabsType slabs_;                   // under lock_, except what it says of one block; begins with what never changes
  // Written by every thread that enters the central lists.
  sync::Mutex<A> lock_;
  atomic<std::uint32_t> given_{0};  // counts what was given back while somebody waited
  atomic<std::uint64_t> conflicts_{0};
  var<std::size_t> reclaim_from_bytes_{kReclaimBytes};
};

}  // namespace freehold::heap

#include "freehold/heap/heap_shards_all.hpp"  // IWYU pragma: keep
