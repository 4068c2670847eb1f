// SPDX-License-Identifier: MIT
// BestPool: the pool to use unless you compare pools. Each thread has a small array of free slots (thread_arrays.hpp); below
// lies one bit per slot in words that no thread owns. Here are the fast paths; what an empty or a full array needs is
// compiled into the library (best_pool_core.hpp).
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
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "freehold/base/asan.hpp"
#include "freehold/base/check.hpp"
#include "freehold/pool/concept.hpp"
#include "freehold/pool/slots.hpp"
#include "freehold/pool/tagged_stack.hpp"
#include "freehold/pool/thread_arrays.hpp"

namespace freehold::pool {

struct LivePool;

/// When a pool's memory comes.
enum class Growth : std::uint8_t {
  kFixed,    ///< all memory is there from the beginning: acquire fails only when every slot is in use
  kGrowing,  ///< address space for the capacity, memory as it is needed: acquire fails when that cannot be had, too
};

struct BestPoolOrders {
  // release: a thief that reads this top reads the entries below it. Every store of top, since in C++20 a later relaxed one
  // would not continue the release sequence of an earlier one.
  std::memory_order owner_sets_top = std::memory_order_release;
  // acquire: pairs with owner_sets_top.
  std::memory_order thief_reads_top = std::memory_order_acquire;
  // release: what the owner did to its array in the slow path, for a thief that waited for its end.
  std::memory_order owner_leaves = std::memory_order_release;
  // acquire: pairs with owner_leaves.
  std::memory_order thief_waits = std::memory_order_acquire;
  // release: the thief is done with the array. (The owner, which waits by taking the lock, would do without.)
  std::memory_order thief_leaves = std::memory_order_release;
  // acquire: pairs with thief_leaves; the entries that the thief took may be overwritten.
  std::memory_order owner_enters = std::memory_order_acquire;
  // release: the list of arrays, and where each is stopped, for threads that look at them without the lock; and that dry_
  // changed, for a thread that sees that an entry is gone.
  std::memory_order goes_dry = std::memory_order_release;
  // acquire: pairs with goes_dry.
  std::memory_order asks_dry = std::memory_order_acquire;
  // These order the stack of batches of scattered slots, which pass from thread to thread.
  TaggedStackOrders transfer{};

  friend constexpr bool operator==(const BestPoolOrders&, const BestPoolOrders&) = default;
};

// The work of a pool beside its fast paths, done by the code of the shared object that made it, whichever asks. BestPool's
// functions of the same names say what each does.
template <sync::Atomics A>
class BestPoolCore {
 public:
  using Place = typename ThreadArrays<A>::Place;

  BestPoolCore() noexcept = default;
  BestPoolCore(const BestPoolCore&) = delete;
  BestPoolCore& operator=(const BestPoolCore&) = delete;
  virtual ~BestPoolCore() = default;

  // For a thread that has no array of the pool in the tables of the shared object that calls.
  [[nodiscard]] virtual void* acquire() noexcept = 0;
  virtual void release(void* slot) noexcept = 0;
  // The fast paths call these if every slot is looked at (kChecked). False: it may not come back, which was reported.
  virtual void on_allocate(void* slot) noexcept = 0;
  [[nodiscard]] virtual bool on_free(void* slot) noexcept = 0;

  [[nodiscard]] virtual Place place() const noexcept = 0;  // the place of the threads' arrays
  [[nodiscard]] virtual std::size_t capacity() const noexcept = 0;
  [[nodiscard]] virtual std::size_t slot_bytes() const noexcept = 0;
  [[nodiscard]] virtual std::size_t peak_slots() const noexcept = 0;
  [[nodiscard]] virtual std::size_t free_slots() noexcept = 0;
  [[nodiscard]] virtual std::uint64_t waits() const noexcept = 0;  // for the lock
  virtual void add_to(LivePool& pool) const noexcept = 0;
  virtual std::size_t trim() noexcept = 0;
  virtual std::size_t look_at_slots() noexcept = 0;
  [[nodiscard]] virtual std::size_t known_live() const noexcept = 0;
  virtual void list_live() const noexcept = 0;
  [[nodiscard]] virtual bool check_invariants() noexcept = 0;
};

// Says how a core is compiled. `kSeen`: the program's sanitizer has to see it, so that the library's does not do. The names
// hold no orders but those of tests, since compilers disagree on how they are written in names.
template <sync::Atomics A, class C, bool kSeen>
struct BestPoolShape {
  using Atomics = A;
  using Contention = C;
  static constexpr BestPoolOrders kOrders{};
};
template <sync::Atomics A, class C, bool kSeen, BestPoolOrders O>
struct BestPoolShapeWith : BestPoolShape<A, C, kSeen> {
  static constexpr BestPoolOrders kOrders = O;
};

template <class Config>
struct [[gnu::visibility("hidden")]] BestPoolSlow {
  using A = typename Config::Atomics;
  using Array = typename ThreadArrays<A>::Array;

  // The core of a pool, which the threads' arrays name by the address `pool`. `looks`: kChecked. Null: there is no memory.
  [[nodiscard]] static BestPoolCore<A>* make(const PoolShape& shape, Growth growth, const void* pool, bool looks,
                                             typename Config::Contention& contention) noexcept;
  // The array, of the calling thread, was empty (its top was taken back one entry too far), or full.
  [[nodiscard]] static void* acquire(Array& array) noexcept;
  static void release(Array& array, void* slot) noexcept;
};

// The fast paths, of the thread whose array it is.
template <class Config>
struct BestPoolFast {
  using A = typename Config::Atomics;
  using Arrays = ThreadArrays<A>;
  using Array = typename Arrays::Array;
  static constexpr BestPoolOrders kOrders = Config::kOrders;
  static constexpr std::intptr_t kEntryBytes = sizeof(typename Arrays::Entry);

  [[nodiscard, gnu::always_inline]] static inline void* acquire(Array& array) noexcept {
    const std::intptr_t top = array.top.load(std::memory_order_relaxed) - kEntryBytes;  // relaxed: ours
    array.top.store(top, kOrders.owner_sets_top);  // in time for a thief by its heavy fence
    A::light_fence();
    // relaxed: a raised bottom only sends us to the slow path.
    if (top >= array.bottom.load(std::memory_order_relaxed)) [[likely]]
      return Arrays::entry(top)->load();
    return BestPoolSlow<Config>::acquire(array);
  }
  [[gnu::always_inline]] static inline void release(Array& array, void* slot) noexcept {
    const std::intptr_t top = array.top.load(std::memory_order_relaxed);  // relaxed: ours
    if (Arrays::is_end(top)) [[unlikely]]
      return BestPoolSlow<Config>::release(array, slot);
    Arrays::entry(top)->store(slot);
    array.top.store(top + kEntryBytes, kOrders.owner_sets_top);
  }
};

/// The pool to use unless you compare pools; programs name it `NativePool<Best>`, or use it through ObjectPool.
template <sync::Atomics A, class Contention, BestPoolOrders O>
class BestPool {
  using Arrays = ThreadArrays<A>;
  using Array = typename Arrays::Array;
  static constexpr bool kSeen = base::kInstrumented;
  using Config = std::conditional_t<O == BestPoolOrders{}, BestPoolShape<A, Contention, kSeen>,
                                    BestPoolShapeWith<A, Contention, kSeen, O>>;
  using Fast = BestPoolFast<Config>;

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
      : core_(BestPoolSlow<Config>::make(shape, growth, this, kChecked, contention_)) {
    if (core_ == nullptr) base::out_of_memory();
    place_ = core_->place();
  }
  BestPool(const BestPool&) = delete;
  BestPool& operator=(const BestPool&) = delete;
  /// Pre: no thread uses the pool any more. Slots in use end with it.
  ~BestPool() { delete core_; }

  /// A free slot, its contents arbitrary; null if none is free (growing: or memory is out).
  /// Threads: any. Cost: 8 or 9 instructions; one atomic per 64 slots.
  [[nodiscard, gnu::always_inline]] inline void* acquire() noexcept {
    Array& array = Arrays::mine(place_);
    if (!array.is_of(this)) [[unlikely]]
      return core_->acquire();
    contention_.operated();
    void* const slot = Fast::acquire(array);
    if constexpr (kChecked) core_->on_allocate(slot);
    return slot;
  }

  /// Takes a slot back.
  /// @param slot  what acquire() of this pool returned, in any thread
  /// Threads: any. Cost: as acquire().
  [[gnu::always_inline]] inline void release(void* slot) noexcept {
    Array& array = Arrays::mine(place_);
    if (!array.is_of(this)) [[unlikely]]
      return core_->release(slot);
    if constexpr (kChecked)
      if (!core_->on_free(slot)) return;
    contention_.operated();
    Fast::release(array, slot);
  }

  /// The most slots that there can be in use.
  [[nodiscard]] std::size_t capacity() const noexcept { return core_->capacity(); }
  /// The size of a slot, rounded up to its alignment.
  [[nodiscard]] std::size_t slot_bytes() const noexcept { return core_->slot_bytes(); }
  /// The most slots that were out at once, counted when memory was opened: at least as many as were in use, and at most an
  /// eighth more, a thread's array for each thread, and 64.
  [[nodiscard]] std::size_t peak_slots() const noexcept { return core_->peak_slots(); }
  /// Slots that are free without opening memory, in words and arrays; exact at rest.
  [[nodiscard]] std::size_t free_slots() noexcept { return core_->free_slots(); }
  /// Returns the counts of the Contention policy.
  [[nodiscard]] sync::Contention contention() const noexcept {
    sync::Contention all = contention_.total();
    all.waits += core_->waits();
    return all;
  }

  /// Gives the memory of spans that are wholly free back to the system; they stay usable.
  /// @return bytes. Threads: any. Cost: a pass over the spans that were opened, under the lock: a thread that finds no slot
  /// during the pass waits and looks again, since the pass holds free slots.
  std::size_t trim() noexcept { return core_->trim(); }

  /// Looks at all slots in checked mode (FREEHOLD_CHECK=1), and reports writes to where no program may write. @return how
  /// many; 0 without checked mode. Threads: any. Cost: a pass over the slots that were opened; others wait.
  std::size_t look_at_slots() noexcept { return core_->look_at_slots(); }

 private:
  template <class T, SlotPool P>
  friend class ObjectPool;
  friend struct Inside;  // tests/support/inside.hpp

  // Writes the places of the pool's figures, for readers outside the process.
  void add_to(LivePool& pool) const noexcept { core_->add_to(pool); }
  // Slots that are in use, where that is known, in checked mode; else 0. At rest.
  [[nodiscard]] std::size_t known_live() const noexcept { return core_->known_live(); }
  // Lists them, if the settings of checked mode say so. At rest.
  void list_live() const noexcept { core_->list_live(); }
  // Says if the invariants hold; at rest.
  [[nodiscard]] bool check_invariants() const noexcept { return core_->check_invariants(); }

  // Written by the constructor only.
  alignas(base::kCacheLine) typename Arrays::Place place_{};
  BestPoolCore<A>* core_;
  [[no_unique_address]] Contention contention_;  // its cells have lines of their own
};

/// The strategy of BestPool.
struct Best {
  /// Its name on command lines and in tables.
  static constexpr std::string_view kName = "best";
  /// Acquire finds the last free slot, in whatever thread it was released.
  static constexpr bool kFindsLast = true;
  /// Bytes a slot, at most.
  static constexpr double kBookkeepingBytes = 0.9;  // slots of 1 KiB; 0.65 for small ones
  /// Its memory orders.
  static constexpr BestPoolOrders kOrders{};
  /// The pool on a machine.
  /// @tparam A           the machine's atomics
  /// @tparam Contention  what is counted
  /// @tparam O           memory orders; for tests
  template <sync::Atomics A, class Contention = sync::IgnoreContention, BestPoolOrders O = kOrders>
  using Pool = BestPool<A, Contention, O>;
};

// The pools that the library has compiled.
extern template struct BestPoolSlow<BestPoolShape<sync::NativeAtomics, sync::IgnoreContention, false>>;
extern template struct BestPoolSlow<BestPoolShape<sync::UnsharedAtomics, sync::IgnoreContention, false>>;
extern template struct BestPoolSlow<BestPoolShape<sync::NativeAtomics, sync::CountContention<sync::NativeAtomics>, false>>;

}  // namespace freehold::pool

#if defined(FREEHOLD_BASE_INSTRUMENTED)
#include "freehold/pool/best_pool_core.hpp"
#endif
