// SPDX-License-Identifier: MIT
// BestPool: the pool to use unless you compare pools. Each thread has a small array of free slots (best_pool_arrays.hpp);
// below lies one bit per slot in words that no thread owns (best_pool_words.hpp).
//
//   pool::PoolShape shape{.slots = 10'000, .slot_bytes = sizeof(Order)};
//   pool::NativePool<pool::Best> pool(shape);       // ObjectPool<Order> is the typed form
//   void* slot = pool.acquire();                    // null: every slot is in use
//   pool.release(slot);                             // from any thread
//
// acquire pops the array, release pushes it: no atomic read-modify-write, no shared line, and the slot itself is not
// touched. An empty array takes a whole word at once (64 slots by one exchange), a full one gives its older half back,
// grouped by word. Memory is opened as it is needed, in ascending order. The last free slot is found even in another
// thread's array: a thread that finds none elsewhere stops all arrays and steals.
//
//   Invariant: a slot is in exactly one place: in a word (its bit is set), in one array, in a batch of the transfer cache
//              (transfer_cache.hpp), not yet opened, or in use.
//
// Any thread; acquire never throws and returns null only if no slot is free (growing: or memory is out). Lock-free but where
// memory is opened and where slots are stolen. A thread's array goes back when the thread ends.
// Cost: 8 or 9 instructions each; one atomic on a word per 64 slots each way; a steal takes some microseconds.
// Bookkeeping: 1 bit a slot and 1/64 of it for summaries; up to half a byte more while scattered slots are on their way.
// A thread that uses the pool: 1 KiB, and 4 KiB of thread-local storage for its first 127 pools. (With more alive at once,
// the others' arrays are looked up, which costs a pair some 8 ns.) Held in a thread's array: at most kMaxEntries slots, 64
// KiB, or an eighth of a pool of fixed capacity, whichever is least.
//
// Misuse is found in checked mode (FREEHOLD_CHECK=1; checked_slots.hpp), where no thread has an array. Else a slot that is
// released twice, and an address outside of the pool, are seen when their batch goes back to the words, 64 at a time; until
// then an array may hand them out again.
//
// Fork: a child of a multithreaded program finds what lay in its other threads' arrays by stealing; it must not be made
// while another thread is in a slow path.
// Source: what "Memory management, pools compared" wished for in its end; docs/design.md has the way there.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/pool/best_pool_arrays.hpp"
#include "freehold/pool/best_pool_words.hpp"
#include "freehold/pool/checked_slots.hpp"
#include "freehold/pool/concept.hpp"
#include "freehold/pool/home.hpp"
#include "freehold/pool/memory.hpp"
#include "freehold/pool/slot_layout.hpp"
#include "freehold/pool/slots.hpp"
#include "freehold/pool/thread_arrays.hpp"
#include "freehold/pool/transfer_cache.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::pool {

/// When a pool's memory comes.
enum class Growth : std::uint8_t {
  kFixed,    ///< all memory is there from the beginning: acquire fails only when every slot is in use
  kGrowing,  ///< address space for the capacity, memory as it is needed: acquire fails when that cannot be had, too
};

/// The pool to use unless you compare pools; programs name it `NativePool<Best>`, or use it through ObjectPool.
template <sync::Atomics A, class Contention, BestPoolOrders O>
class BestPool {
  using List = BestPoolArrays<A, O, BestPool>;
  friend List;
  using Arrays = typename List::Arrays;
  using Array = typename Arrays::Array;
  using Entry = typename Arrays::Entry;
  using Cache = typename List::Cache;
  using SlowPath = typename List::SlowPath;
  using Dry = typename List::Dry;
  static constexpr std::intptr_t kEntryBytes = List::kEntryBytes;
  static constexpr unsigned kMaxEntries = List::kMaxEntries;
  using Words = BestPoolWords<A>;
  using Transfer = TransferCache<A, O.transfer>;
  static constexpr unsigned kTries = 8;  // words that a refill looks at for half a batch

 public:
  /// A pool of fixed capacity.
  /// @param shape  number, size and alignment of the slots
  /// Errors: std::bad_alloc.
  [[gnu::visibility("hidden")]] explicit BestPool(const PoolShape& shape) : BestPool(shape, Growth::kFixed) {}
  /// A pool whose memory comes as `growth` says.
  /// @param shape   number, size and alignment of the slots
  /// @param growth  kFixed or kGrowing
  /// Errors: std::bad_alloc.
  [[gnu::visibility("hidden")]] BestPool(const PoolShape& shape, Growth growth)
      : words_(shape, growth == Growth::kGrowing),
        checked_(CheckedSlots::make(layout().room(), shape, true)),
        allocated_(layout().numbers()),
        transfer_(layout().slots()),
        entries_(entries_for(shape, growth)),
        batch_(entries_ >= kWholeWords ? 64 : (entries_ + 1) / 2),
        steals_(A::may_fence_heavily()) {
    // Without stealing, a pool of fixed capacity has no arrays to hide its last slots in; a growing one stops short of them.
    uses_arrays_ = !layout().watched_by_memcheck() && checked_ == nullptr && (growth == Growth::kGrowing || steals_);
    if (uses_arrays_) place_ = places_.claim();
  }
  BestPool(const BestPool&) = delete;
  BestPool& operator=(const BestPool&) = delete;
  /// Pre: no thread uses the pool any more. Slots in use end with it.
  [[gnu::visibility("hidden")]] ~BestPool() {
    if (checked_ != nullptr) {
      (void)look_at_slots();
      list_live();
    }
    // Asked again: a simulated machine has others when an execution was cut short.
    auto& places = home_.is_here() ? Arrays::places() : places_;
    const sync::Guard global(places.lock);
    arrays_.delete_all();
    places.give_up(place_);
  }

  /// A free slot, its contents arbitrary; null if none is free (growing: or memory is out).
  /// Threads: any. Cost: 8 or 9 instructions; one atomic per 64 slots.
  [[nodiscard, gnu::always_inline]] inline void* acquire() noexcept {
    Array& array = Arrays::mine(place_);
    if (!array.is_of(this)) [[unlikely]]
      return acquire_unjoined();
    return acquire_from(array);
  }

  /// Takes a slot back.
  /// @param slot  what acquire() of this pool returned, in any thread
  /// Threads: any. Cost: as acquire().
  [[gnu::always_inline]] inline void release(void* slot) noexcept {
    Array& array = Arrays::mine(place_);
    if (!array.is_of(this)) [[unlikely]]
      return release_unjoined(slot);
    release_to(array, slot);
  }

  /// The most slots that there can be in use.
  [[nodiscard]] std::size_t capacity() const noexcept { return layout().slots(); }
  /// The size of a slot, rounded up to its alignment.
  [[nodiscard]] std::size_t slot_bytes() const noexcept { return layout().room().slot_bytes; }
  /// The most slots that were out at once, counted when memory was opened: at least as many as were in use, and at most an
  /// eighth more, a thread's array for each thread, and 64.
  [[nodiscard]] std::size_t peak_slots() const noexcept { return words_.opened_slots(); }
  /// Slots that are free without opening memory, in words and arrays; exact at rest.
  [[nodiscard]] std::size_t free_slots() noexcept {
    const sync::Guard guard(lock_);
    arrays_.start_all(nullptr);
    std::size_t n = transfer_.kept() + words_.free_slots() + (checked_ != nullptr ? checked_->kept() : 0);
    for (const Cache* cache = arrays_.first(); cache != nullptr; cache = cache->next)
      if (cache->array != nullptr) n += Arrays::entries(*cache->array);
    return n;
  }
  /// Writes the places of the pool's figures, for readers outside the process. ObjectPool calls it.
  /// @param pool  where to
  void add_to(LivePool& pool) const noexcept { words_.add_to(pool); }
  /// What the Contention policy counted.
  [[nodiscard]] sync::Contention contention() const noexcept {
    sync::Contention all = contention_.total();
    all.waits += lock_.waits().count();
    return all;
  }

  /// Gives the memory of spans that are wholly free back to the system; they stay usable.
  /// Returns: bytes. Threads: any. Cost: a pass over the spans that were opened, under the lock: a thread that finds no slot
  /// meanwhile waits and looks again, since what is passing through here is free.
  std::size_t trim() noexcept {
    const sync::Guard guard(lock_);
    Entry batch[Transfer::kBatch];
    while (const std::size_t n = transfer_.take(batch, contention_))
      words_.put_entries(Arrays::address(batch), Arrays::address(batch + n), nullptr);
    return words_.trim();
  }

  /// Looks at all slots in checked mode (FREEHOLD_CHECK=1), and reports those that were written where nobody may.
  /// Returns: how many; 0 without checked mode. Threads: any. Cost: a pass over the slots that were opened; others wait.
  std::size_t look_at_slots() noexcept {
    return checked_ == nullptr ? 0 : checked_->look_at_all([this](auto&& f) { words_.for_each_opened(f); });
  }
  /// Slots that are in use, where that is known, in checked mode; else 0. At rest.
  [[nodiscard]] std::size_t known_live() const noexcept { return checked_ != nullptr ? checked_->live() : 0; }
  /// Lists them, if the settings of checked mode say so. At rest.
  void list_live() const noexcept {
    if (checked_ != nullptr) checked_->list_live([this](auto&& f) { words_.for_each_opened(f); });
  }

  /// Whether the invariants hold; at rest. For tests.
  [[nodiscard]] bool check_invariants() noexcept {
    const sync::Guard guard(lock_);
    arrays_.start_all(nullptr);
    return words_.check_invariants() && arrays_.check_invariants();
  }

 private:
  // Arrays of so many entries trade whole words, which costs least; a refill that begins with half a batch must fit, too.
  static constexpr unsigned kWholeWords = 96;
  static_assert(kMaxEntries >= kWholeWords && Transfer::kBatch >= 64);

  [[nodiscard]] const SlotLayout& layout() const noexcept { return words_.layout(); }

  static unsigned entries_for(const PoolShape& shape, Growth growth) noexcept {
    constexpr std::size_t kMaxBytes = 64 * 1024;
    std::size_t n = std::min<std::size_t>(kMaxEntries, std::max<std::size_t>(kMaxBytes / shape.slot_bytes, 1));
    if (growth == Growth::kFixed) n = std::min(n, std::max<std::size_t>(shape.slots / 8, 1));
    return static_cast<unsigned>(n);
  }

  // ---- what checkers are told

  // Else only memcheck may watch, and arrays are off then: the slow paths tell it.
  static constexpr bool kMarksAlways = kChecked;

  [[nodiscard]] void* hand_out(void* slot) noexcept {
    if constexpr (kMarksAlways) {
      if (slot == nullptr) return nullptr;
      if constexpr (kChecked) allocated_.on_allocate(layout().number(slot), slot);
      layout().on_allocate(slot);
    }
    return slot;
  }
  [[nodiscard]] bool take_back(void* slot) noexcept {
    if constexpr (kChecked) {
      if (!layout().is_slot(slot)) {
        base::fatal(layout().contains(slot) ? base::HeapError::kInteriorPointer : base::HeapError::kForeignPointer, slot);
        return false;
      }
      if (!allocated_.on_free(layout().number(slot), slot)) return false;
    }
    if constexpr (kMarksAlways) layout().on_free(slot);
    return true;
  }

  // ---- fast paths

  [[nodiscard, gnu::always_inline]] inline void* acquire_from(Array& array) noexcept {
    contention_.operated();
    const std::intptr_t top = array.top.load(std::memory_order_relaxed) - kEntryBytes;  // relaxed: ours
    array.top.store(top, O.owner_sets_top);  // in time for a thief by its heavy fence
    A::light_fence();
    // relaxed: a raised bottom only sends us to the slow path.
    if (top >= array.bottom.load(std::memory_order_relaxed)) [[likely]]
      return hand_out(Arrays::entry(top)->load());
    return hand_out(acquire_slow(array));
  }
  [[gnu::always_inline]] inline void release_to(Array& array, void* slot) noexcept {
    if (!take_back(slot)) return;
    contention_.operated();
    const std::intptr_t top = array.top.load(std::memory_order_relaxed);  // relaxed: ours
    if (Arrays::is_end(top)) [[unlikely]]
      return release_slow(array, slot);
    Arrays::entry(top)->store(slot);
    array.top.store(top + kEntryBytes, O.owner_sets_top);
  }

  // ---- slow paths

  [[gnu::noinline]] void* acquire_slow(Array& array) noexcept {
    array.top.store(array.top.load(std::memory_order_relaxed) + kEntryBytes, O.owner_sets_top);
    return acquire_for(cache_of(array));
  }

  [[nodiscard]] void* acquire_for(Cache& cache) noexcept {
    switch (arrays_.look_while_dry(cache)) {
      case Dry::kNothing: return nullptr;
      case Dry::kSomething: return acquire_last(&cache);
      case Dry::kIsNot: break;
    }
    if (void* const slot = refill(cache); slot != nullptr) return slot;
    return acquire_last(&cache);
  }

  // The calling thread has no array of this pool in the tables of the shared object that calls.
  [[nodiscard, gnu::noinline, gnu::visibility("hidden")]] void* acquire_unjoined() noexcept {
    if (!home_.is_here()) return home_.acquire(*this);
    if (checked_ != nullptr) return acquire_checked();
    if (place_ == Arrays::Place::kNone)
      if (Array* const array = Arrays::further(this); array != nullptr) return acquire_from(*array);
    contention_.operated();
    if (Cache* const cache = join(); cache != nullptr) return hand_out(acquire_for(*cache));
    void* const slot = acquire_directly();
    if constexpr (!kMarksAlways)
      if (slot != nullptr && layout().watched_by_memcheck()) layout().on_allocate(slot);
    return hand_out(slot);
  }

  [[gnu::noinline, gnu::visibility("hidden")]] void release_unjoined(void* slot) noexcept {
    if (!home_.is_here()) return home_.release(*this, slot);
    if (checked_ != nullptr) return release_checked(slot);
    if (place_ == Arrays::Place::kNone)
      if (Array* const array = Arrays::further(this); array != nullptr) return release_to(*array, slot);
    if (!take_back(slot)) return;
    contention_.operated();
    if (Cache* const cache = join(); cache != nullptr) return release_slow(*cache->array, slot);
    if constexpr (!kMarksAlways)
      if (layout().watched_by_memcheck()) layout().on_free(slot);
    Entry entry(slot);
    words_.expect_own(&entry, 1);
    if (!uses_arrays_) return words_.put(&slot, 1, nullptr);
    const sync::Guard guard(lock_);  // a dry pool's words are empty
    arrays_.start_all(nullptr);
    words_.put(&slot, 1, nullptr);
  }

  [[nodiscard]] void* refill(Cache& cache) noexcept {
    const SlowPath mark(arrays_, lock_, cache);
    if (void* const slot = List::pop(cache); slot != nullptr) return slot;  // a thief had raised bottom, and left
    if (const std::size_t n = transfer_.take(cache.first(), contention_); n != 0) return List::fill(cache, 0, n);
    // Half a word or less makes the way here hardly worth while: a few more of them. From the top down, so that pops go
    // through memory upwards, which the CPU foresees.
    const std::size_t end = batch_ + batch_ / 2;
    std::size_t begin = end;
    for (unsigned tries = 0; (end - begin) * 2 <= batch_ && tries < kTries; ++tries) {
      const Taken taken = words_.take(cache.cursor, batch_, cache.thread_id);
      if (taken.bits == 0) break;
      begin -= static_cast<std::size_t>(std::popcount(taken.bits));
      (void)words_.list(taken, cache.first() + begin);
    }
    return List::fill(cache, begin, end);
  }

  [[gnu::noinline]] void release_slow(Array& array, void* slot) noexcept {
    Cache* const cache = &cache_of(array);
    if (arrays_.push_stopped(lock_, *cache, slot)) return;
    const SlowPath mark(arrays_, lock_, *cache);
    std::intptr_t top = array.top.load(std::memory_order_relaxed);
    const std::intptr_t bottom = array.bottom.load(std::memory_order_relaxed);
    if (Arrays::is_end(top)) {
      // Entries that a thief took have left room below; else the older half goes back.
      std::intptr_t keep = bottom;
      if (bottom == cache->start()) {
        const std::size_t n = batch_;
        words_.expect_own(cache->first(), n);
        if (!words_.are_scattered(cache->first(), n) || !transfer_.put(cache->first(), n, contention_))
          words_.put_entries(bottom, bottom + static_cast<std::intptr_t>(n) * kEntryBytes, &cache->cursor);
        keep = bottom + static_cast<std::intptr_t>(n * sizeof(Entry));
      }
      top = List::move_down(keep, top, cache->start());
      array.bottom.store(cache->start(), std::memory_order_relaxed);
    }
    Arrays::entry(top)->store(slot);
    array.top.store(top + kEntryBytes, O.owner_sets_top);
  }

  // ---- checked mode: no thread has an array

  [[nodiscard]] void* acquire_checked() noexcept {
    contention_.operated();
    const sync::Guard guard(checked_->lock());
    void* slot = acquire_directly();
    if (slot == nullptr) slot = checked_->take_kept();
    return slot == nullptr ? nullptr : checked_->on_allocate(slot);
  }
  void release_checked(void* slot) noexcept {
    contention_.operated();
    const sync::Guard guard(checked_->lock());
    if (!layout().is_slot(slot))
      return base::fatal(layout().contains(slot) ? base::HeapError::kInteriorPointer : base::HeapError::kForeignPointer,
                         slot);
    if (layout().ordinal(slot) >= words_.opened_slots())  // which nobody ever had
      return base::fatal(base::HeapError::kDoubleFree, slot);
    if (!checked_->on_free(slot)) return;
    if (void* const leaves = checked_->keep(slot); leaves != nullptr) words_.put(&leaves, 1, nullptr);
  }

  // Without an array: more pools are alive than have a place, the thread is about to end, a checker watches, or memory for
  // the array is out.
  [[nodiscard]] void* acquire_directly() noexcept {
    const Taken taken = take_some(nullptr);
    return taken.bits != 0 ? settle(nullptr, taken) : acquire_last(nullptr);
  }

  // Nothing in the words: opens memory, or steals. `cache`: the caller's, if it has one; it is not in its slow path.
  [[gnu::noinline]] void* acquire_last(Cache* cache) noexcept {
    const sync::Guard guard(lock_);
    if (arrays_.is_dry()) return arrays_.take_stopped(cache);
    if (cache != nullptr)  // what was pushed while the array was stopped
      if (void* const slot = List::pop(*cache); slot != nullptr) return slot;
    // Again, since others may have opened or stolen before us. No thief is about: we hold the lock.
    void* const slot = take_kept(cache);
    if (slot != nullptr) return slot;
    Taken taken = take_some(cache);
    if (taken.bits == 0) taken = words_.open(cache != nullptr ? batch_ : 1);
    return taken.bits != 0 ? settle(cache, taken) : steal(cache);
  }

  // A batch from another thread's drain: one slot for the caller, the others into its array or to the words. Pre: the lock
  // is held.
  [[nodiscard]] void* take_kept(Cache* cache) noexcept {
    if (cache != nullptr) return List::fill(*cache, 0, transfer_.take(cache->first(), contention_));
    Entry batch[Transfer::kBatch];
    const std::size_t n = transfer_.take(batch, contention_);
    if (n == 0) return nullptr;
    words_.put_entries(Arrays::address(batch), Arrays::address(batch + n - 1), nullptr);
    return batch[n - 1].load();
  }

  [[nodiscard]] Taken take_some(Cache* cache) noexcept {
    Cursor cursor;
    const std::uint32_t thread_id = cache != nullptr ? cache->thread_id : A::thread_number() + 1;
    const Taken taken = words_.take(cursor, cache != nullptr ? batch_ : 1, thread_id);
    words_.clear_active(cursor, thread_id);
    return taken;
  }

  // One of the slots for the caller, the others into its array. Pre: the lock is held or the cache is in its slow path.
  [[nodiscard]] void* settle(Cache* cache, Taken taken) noexcept {
    if (cache == nullptr) return layout().address(taken.word, base::lowest_bit(taken.bits));
    cache->cursor.word = taken.word;
    return List::fill(*cache, 0, words_.list(taken, cache->first()));
  }

  // Empties the other threads' arrays; one slot is the caller's, the rest goes to the words. Null: at the moment when all
  // were stopped, no slot was free. They stay stopped then, unless memory might be opened later. Pre: the lock is held.
  [[nodiscard]] void* steal(Cache* mine) noexcept {
    if (!steals_) return nullptr;
    if (!arrays_.stop_others(mine)) return nullptr;
    void* slot = take_kept(mine);
    if (slot == nullptr)
      if (const Taken taken = take_some(mine); taken.bits != 0) slot = settle(mine, taken);
    const bool found = slot != nullptr;
    arrays_.for_each_other(mine, [&](Cache& cache) {
      std::intptr_t from = cache.bottom_before.load(std::memory_order_relaxed);
      const std::intptr_t top = List::top_of(cache, from);
      if (slot == nullptr && from < top) {
        slot = Arrays::entry(from)->load();
        from += kEntryBytes;
      }
      if (!found) {
        words_.put_entries(from, top, nullptr);
        from = top;
      }
      cache.bottom_before.store(from, std::memory_order_relaxed);  // relaxed: ours, under the lock
    });
    if (slot == nullptr && words_.is_all_open())
      arrays_.go_dry(mine);
    else
      arrays_.start_others(mine);
    return slot;
  }

  // ---- a thread's coming and going

  // Pre: a thread's array of this pool.
  [[nodiscard]] static Cache& cache_of(Array& array) noexcept { return *static_cast<Cache*>(array.cache); }

  // Gives the calling thread an array of this pool, on the cache of a thread that has ended or on a new one. Null: it can
  // have none. Pre: it has none; we are in the pool's home.
  [[nodiscard, gnu::visibility("hidden")]] Cache* join() noexcept {
    Array* const unused = uses_arrays_ ? Arrays::unused(this, place_) : nullptr;
    if (unused == nullptr) return nullptr;
    Array& array = *unused;
    const sync::Guard guard(lock_);
    arrays_.start_all(nullptr);
    Cache* const cache = arrays_.unused(*this);
    if (cache == nullptr) return nullptr;
    cache->array = &array;
    cache->capacity = entries_;
    cache->thread_id = A::thread_number() + 1;
    array.cache = cache;
    array.pool.store(this, std::memory_order_relaxed);
    array.bottom.store(cache->start(), std::memory_order_relaxed);  // relaxed: thieves read it after our slow paths
    array.top.store(cache->start(), std::memory_order_relaxed);
    Arrays::at_exit();
    return cache;
  }

  // The owner's end: its slots go back to the words.
  void leave(Cache& cache) noexcept {
    const sync::Guard guard(lock_);
    arrays_.start_all(&cache);
    Array& array = *cache.array;
    words_.put_entries(array.bottom.load(std::memory_order_relaxed), array.top.load(std::memory_order_relaxed), nullptr);
    words_.clear_active(cache.cursor, cache.thread_id);
    cache.array = nullptr;
    array.clear();
  }

  // Nobody writes after construction.
  typename Arrays::Place place_{};
  typename Arrays::Places& places_ = Arrays::places();
  Home<A, BestPool> home_;
  Words words_;
  std::unique_ptr<CheckedSlots> checked_;  // null but in checked mode
  AllocatedSlots allocated_;
  Transfer transfer_;
  unsigned entries_;
  unsigned batch_;
  bool uses_arrays_ = false;
  bool steals_;  // the kernel has membarrier
  // Slow paths, under the lock.
  alignas(base::kCacheLine) sync::Mutex<A, sync::CountWaits<A>> lock_;
  List arrays_;
  alignas(base::kCacheLine) [[no_unique_address]] Contention contention_;
};

/// The strategy of BestPool; see PoolStrategy.
struct Best {
  /// Its name on command lines and in tables.
  static constexpr std::string_view kName = "best";
  /// Where it comes from.
  static constexpr std::string_view kSource = "article 2, the pool its author wished for";
  /// Acquire finds the last free slot, in whatever thread it was released.
  static constexpr bool kFindsLast = true;
  /// Models explore it with fewer preemptions.
  static constexpr bool kManySteps = true;
  /// Bytes a slot, at most.
  static constexpr double kBookkeepingBytes = 0.9;  // slots of 1 KiB; 0.65 for small ones
  /// Its memory orders.
  static constexpr BestPoolOrders kOrders{};
  /// Orders whose weakening no test can see.
  static constexpr std::array kUnobservable{
      Unobservable{6, "the heavy fence before publishes the same, and all look at the arrays in one order"}};
  /// The pool on a machine.
  /// @tparam A           the machine's atomics
  /// @tparam Contention  what is counted
  /// @tparam O           memory orders; for tests
  template <sync::Atomics A, class Contention = sync::IgnoreContention, BestPoolOrders O = kOrders>
  using Pool = BestPool<A, Contention, O>;
};

}  // namespace freehold::pool
