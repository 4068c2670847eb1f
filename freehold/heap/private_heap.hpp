// SPDX-License-Identifier: MIT
// A private heap for any thread: memory of a subsystem's or an object's own, with a limit, statistics, and an end of all
// blocks at once. Threads contend only with other users of the same heap, and among those only where two meet on one CPU.
//
//   freehold::PrivateHeap heap({.name = "orders", .limit_bytes = 64 << 20});
//   void* block = heap.allocate(100);
//   heap.deallocate(block, 100);                 // any thread; the size saves a look at the block's slab
//   heap.release_all();
//
// This file is the interface, large blocks, and what happens at the limit. Below lie the free slots in shards
// (heap_shards.hpp), each with a lock that is biased to one thread (shard_lock.hpp), and the slabs (slabs.hpp).
//
// Threads: any, for all but construction and destruction. release_all() and the destructor may be called by any thread
// while no other one uses blocks of this heap.
// Cost: allocate and deallocate take two stores and two loads on the shard's line, without an owner one atomic exchange and
// one store; a system call to take a shard from its owner; the central lock once in 4 to 64 operations. Held beyond what is
// in use: at most two batches (16 KiB) and a run for each class and shard that used it.
// Source: "Practical testing 30: reducing contention".
#pragma once
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include "freehold/alloc/scope/scope.hpp"
#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/base/member_offset.hpp"
#include "freehold/check/claim.hpp"
#include "freehold/heap/concept.hpp"
#include "freehold/heap/heap_options.hpp"
#include "freehold/heap/heap_shards.hpp"
#include "freehold/heap/live_heap.hpp"
#include "freehold/heap/owner_locked_heap.hpp"
#include "freehold/heap/registry.hpp"
#include "freehold/heap/slabs.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::heap {

/// A private heap for any thread; programs use it as `freehold::PrivateHeap`, with the template's defaults.
template <sync::Atomics A, class Geometry, SlabSource Source, class Registration, class Orders = PrivateHeapOrders>
class BasicPrivateHeap {
  using Shards = HeapShards<A, Geometry, Source, Orders>;
  using SlabsType = typename Shards::SlabsType;
  using SlabType = typename Shards::SlabType;
  using All = typename Shards::All;
  /// Serves a heap that scopes use: scoped_heap.hpp.
  struct Scopes {
    alloc::ScopedHeap live;                        ///< the engine asks it for blocks
    void (*end)(BasicPrivateHeap& heap) noexcept;  ///< the heap's destructor calls it
  };
  template <class Heap>
  friend struct ScopedHeaps;

 public:
  /// The size classes of blocks.
  using Classes = typename Geometry::Classes;
  /// The alignment of blocks that are allocated without one: 16.
  static constexpr std::size_t kDefaultAlignment = alignof(std::max_align_t);

  /// A new heap, which takes no memory before its first block.
  /// @param options  name, limit and behaviour at the limit
  /// @param source   where slabs come from
  explicit BasicPrivateHeap(const HeapOptions& options = {}, Source source = {}) noexcept
      : shards_(this, options.limit_bytes.value_or(SIZE_MAX), placed(source, options)),
        options_(options),
        registration_(*this) {}
  BasicPrivateHeap(const BasicPrivateHeap&) = delete;
  BasicPrivateHeap& operator=(const BasicPrivateHeap&) = delete;
  /// Ends every block; destructors of objects do not run. But where a HeapScope has used the heap, blocks that are in use
  /// stay, with the memory around them, until they are freed; a scope that is open is of no heap from then on.
  ~BasicPrivateHeap() {
    scoped() != nullptr ? scopes_.load(std::memory_order_relaxed)->end(*this) : registration_.end([] {});
  }

  /// A block of at least `bytes` bytes; its contents are arbitrary.
  /// @param bytes      size; 0 is served as 1
  /// @param alignment  a power of two
  /// @return the block. Null if the limit is reached (after on_limit and waiting, as the options say) or memory is
  /// exhausted. Threads: any. Cost: a handful of instructions on the shard's line; see the head of this file.
  [[nodiscard, gnu::always_inline]] void* allocate(std::size_t bytes, std::size_t alignment = kDefaultAlignment) noexcept {
    FREEHOLD_ASSERT(std::has_single_bit(alignment));
    if (!is_small(bytes, alignment)) [[unlikely]]
      return allocate_large(bytes, alignment);
    const unsigned c = class_of(bytes, alignment);
    if (const auto locked = shards_.try_lock_shard(); locked.shard != nullptr) [[likely]] {
      void* const slot = shards_.pop(locked.shard->bins[c], c);
      if (slot != nullptr) [[likely]] {
        Shards::unlock(locked);
        return on_allocate(c, slot);
      }
      return allocate_refilling(locked, c);
    }
    return allocate_centrally(bytes, alignment);
  }

  /// Frees a block.
  /// @param block      a block of this heap, or null
  /// @param bytes      the size that it was allocated with
  /// @param alignment  the alignment that it was allocated with
  /// Threads: any. Cost: as allocate().
  void deallocate(void* block, std::size_t bytes, std::size_t alignment = kDefaultAlignment) noexcept {
    if (block == nullptr) return;
    if (!is_small(bytes, alignment)) [[unlikely]]
      return deallocate_large(block, bytes, alignment);
    if (is_looked_at()) [[unlikely]]
      return deallocate_looked_at(block, bytes, alignment);
    push(block, class_of(bytes, alignment));
  }
  /// The same without the size, which the block's slab knows: one more cache line.
  /// @param block  a block of this heap, or null
  void deallocate(void* block) noexcept {
    if (block == nullptr) return;
    if (is_looked_at()) [[unlikely]]
      return deallocate_looked_at(block);
    SlabType* const slab = slabs().find(block);
    if (slab == nullptr) return;
    if (slab->kind.load() == SlabKind::kLarge) [[unlikely]]
      return deallocate_large(block, check::Claim::kUnsaid, check::Claim::kUnsaid);
    if (const unsigned c = SlabsType::class_in(*slab, block); c != SlabsType::kNoClass) push(block, c);
  }

  /// Grows or shrinks a block, which stays where it is if may_stay(); contents are kept as far as they fit.
  /// @param block  a block of this heap; null: as allocate()
  /// @param bytes  the new size
  /// @return the block, aligned to kDefaultAlignment whatever the old one was. Null: the old block is untouched.
  [[nodiscard]] void* reallocate(void* block, std::size_t bytes) noexcept { return reallocate_in(*this, block, bytes); }
  /// Returns whether reallocate() leaves the block where it is: in the class of its new size, or large and at least half in
  /// use.
  /// @param block  a block of this heap
  /// @param bytes  the new size
  [[nodiscard]] bool may_stay(const void* block, std::size_t bytes) const noexcept {
    const unsigned c = is_small(bytes, kDefaultAlignment) ? class_of(bytes, kDefaultAlignment) : SlabsType::kNoClass;
    return !shards_.slabs().is_checked() && base::is_aligned(reinterpret_cast<std::uintptr_t>(block), kDefaultAlignment) &&
           SlabsType::serves_as(block, c, bytes);
  }
  /// The bytes of a block that may be used: at least what was asked for.
  /// @param block  a block of this heap
  [[nodiscard]] std::size_t usable_size(const void* block) const noexcept { return shards_.slabs().usable_size(block); }
  /// The heap that a block belongs to.
  /// @param block  a block of any heap of this type
  [[nodiscard]] static BasicPrivateHeap& heap_of(const void* block) noexcept {
    return *static_cast<BasicPrivateHeap*>(SlabsType::heap_of(block));
  }

  /// An STL allocator on this heap, for containers and as what std::execution's get_allocator asks an environment for.
  /// @tparam T  the type of the objects; any other can be had from it by conversion
  template <class T = std::byte>
  [[nodiscard]] HeapAllocator<T, BasicPrivateHeap> get_allocator() noexcept {
    return *this;
  }

  /// Ends every block; destructors of objects do not run. Memory goes back to the engine, except the slabs with the heap's
  /// own data.
  /// @param held  what happens if a HeapScope has used the heap and some blocks are in use, which plain code may hold
  /// @return 0, or the blocks for which it refused to do anything; checked mode writes who allocated them. Threads: any,
  /// while no other one uses blocks of this heap or is in a scope of it. Cost: O(slabs and large blocks).
  std::size_t release_all(HeldBlocks held = HeldBlocks::kRefuse) noexcept {
    bool awaited = false;
    (void)collect();
    {
      const All all(shards_);
      const std::uint64_t blocks = held == HeldBlocks::kRefuse && scoped() != nullptr ? stats_locked().live_objects : 0;
      if (blocks != 0) {
        if (slabs().is_checked()) slabs().report_checked();
        return blocks;
      }
      awaited = shards_.release_all();
    }
    if (awaited) shards_.notify_waiters();
    return 0;
  }

  /// Gives wholly free slabs back to the engine.
  /// @return bytes. Threads: any. Cost: O(free slots), with the heap locked.
  /// @param collects  as in stats()
  std::size_t trim(bool collects = true) noexcept {
    if (collects) (void)collect();
    const All all(shards_);
    return shards_.is_started() ? shards_.reclaim() : 0;
  }

  /// Takes slabs in advance.
  /// @param bytes  how much more than is in use
  /// @return false if there is no memory, or the limit does not allow so much. Threads: any.
  [[nodiscard]] bool reserve(std::size_t bytes) noexcept {
    const sync::Guard guard(shards_.lock());
    if (slabs().is_checked()) return slabs().allows(bytes);
    return shards_.start() && slabs().reserve(bytes);
  }

  /// A snapshot of the whole heap at one instant. Threads: any. Cost: O(shards), with the heap locked, and O(threads) after
  /// a scope.
  /// @param collects  false: without what threads keep, for the registry, which has collected that
  [[nodiscard]] HeapStats stats(bool collects = true) noexcept {
    if (collects) (void)collect();
    HeapStats stats = (static_cast<void>(All(shards_)), stats_locked());  // locked until the semicolon
    if (alloc::ScopedHeap* const live = scoped(); live != nullptr)
      live->engine->subtract_kept(*live, stats.live_objects, stats.live_bytes);
    return stats;
  }
  /// Operations that found a shard in use by another thread. Threads: any. Cost: one load.
  [[nodiscard]] std::uint64_t conflicts() const noexcept { return shards_.conflicts(); }
  /// The name that the options gave. Threads: any.
  [[nodiscard]] const char* name() const noexcept { return options_.name; }

  /// The form in which scopes know the heap; null: none has used it. HeapScope asks.
  [[nodiscard]] alloc::ScopedHeap* scoped() const noexcept {
    Scopes* const scopes = scopes_.load(Orders::kFind);
    return scopes == nullptr ? nullptr : &scopes->live;
  }

 private:
  friend Registration;
  friend struct Inside;  // tests/support/inside.hpp

  // ---- for the registry, and for tests

  // Writes the places of the figures of every heap of this type, for readers outside the process.
  void add_to(LiveHeapLayout& layout) const noexcept { shards_.add_to(layout, this); }

  // Locks the whole heap, so that a child of fork finds it consistent.
  void before_fork() noexcept { locked_for_fork_.store(shards_.lock_all()); }
  // Unlocks what before_fork() locked, in the parent and in the child.
  void after_fork() noexcept {
    const std::uint64_t locked = locked_for_fork_.load();
    shards_.clear_words(locked);
    shards_.unlock_all(locked);
  }

  // Ends the process in a checked build if an invariant does not hold.
  void check_invariants() noexcept {
    const All all(shards_);
    shards_.check_invariants();
  }

  // A free slot has room for two links: to the next one, and a batch's first one to the next batch.
  static constexpr std::size_t kLeastBytes = 2 * sizeof(void*);

  [[nodiscard]] SlabsType& slabs() noexcept { return shards_.slabs(); }
  [[nodiscard]] static constexpr bool is_small(std::size_t bytes, std::size_t alignment) noexcept {
    return bytes <= Classes::kMaxBytes - SlabsType::kRedZone && alignment <= Classes::kMaxAlignment;
  }
  [[nodiscard]] static constexpr unsigned class_of(std::size_t bytes, std::size_t alignment) noexcept {
    bytes = SlabsType::with_red_zone(bytes);
    return Classes::class_of(bytes < kLeastBytes ? kLeastBytes : bytes, alignment);
  }
  [[nodiscard]] void* on_allocate(unsigned c, void* slot) noexcept {
    slabs().on_allocate(c, slot);
    return slot;
  }

  [[gnu::noinline]] void* allocate_refilling(const typename Shards::LockedShard locked, unsigned c) noexcept {
    void* const slot = shards_.allocate_refilling(locked, c);
    return slot != nullptr ? on_allocate(c, slot) : allocate_scarce_slot(c);
  }
  // Allocates when no shard can be locked.
  [[gnu::noinline]] void* allocate_centrally(std::size_t bytes, std::size_t alignment) noexcept {
    if (slabs().is_checked()) return allocate_checked(bytes, alignment);
    const unsigned c = class_of(bytes, alignment);
    void* const slot = shards_.allocate_centrally(c);
    return slot != nullptr ? on_allocate(c, slot) : allocate_scarce_slot(c);
  }
  void push(void* block, unsigned c) noexcept {
    if (shards_.push(c, block)) [[unlikely]]
      shards_.notify_waiters();
  }

  // ---- blocks whose coming and going is looked at: in checked mode, in a checked build, and under memory checkers

  [[nodiscard]] bool is_looked_at() const noexcept { return kSeesMisuse || shards_.slabs().poison().watched(); }
  [[nodiscard]] void* allocate_checked(std::size_t bytes, std::size_t alignment) noexcept {
    return allocate_scarce([=, this] { return slabs().take_checked(bytes, alignment); }, bytes);
  }
  [[gnu::noinline]] void deallocate_looked_at(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (slabs().is_checked()) return deallocate_checked(block, bytes, alignment);
    if (const unsigned c = class_of(bytes, alignment); slabs().on_free(c, block)) push(block, c);
  }
  [[gnu::noinline]] void deallocate_looked_at(void* block) noexcept {
    if (slabs().is_checked()) return deallocate_checked(block, check::Claim::kUnsaid, check::Claim::kUnsaid);
    SlabType* const slab = slabs().find(block);
    if (slab == nullptr) return;
    if (slab->kind.load() == SlabKind::kLarge) return deallocate_large(block, check::Claim::kUnsaid, check::Claim::kUnsaid);
    if (const unsigned c = SlabsType::class_in(*slab, block); c != SlabsType::kNoClass && slabs().on_free(c, block))
      push(block, c);
  }
  void deallocate_checked(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    give_back([&] { slabs().give_checked(block, {check::Family::kHeap, bytes, alignment}); });
  }

  // ---- large blocks

  [[gnu::noinline]] void* allocate_large(std::size_t bytes, std::size_t alignment) noexcept {
    if (slabs().is_checked()) return allocate_checked(bytes, alignment);
    {
      const sync::Guard guard(shards_.lock());
      if (void* const block = slabs().take_large(bytes, alignment); block != nullptr) return block;
    }
    return allocate_scarce(
        [=, this]() -> void* {
          if (!shards_.start()) return nullptr;
          shards_.reclaim();
          return slabs().take_large(bytes, alignment);
        },
        bytes);
  }
  // The size and alignment are of interest in checked mode alone.
  [[gnu::noinline]] void deallocate_large(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (slabs().is_checked()) return deallocate_checked(block, bytes, alignment);
    give_back([&] { slabs().give_large(block); });
  }
  // Gives something back under the central lock.
  template <class Give>
  void give_back(const Give& give) noexcept {
    bool awaited = false;
    {
      const sync::Guard guard(shards_.lock());
      give();
      awaited = shards_.is_awaited();
    }
    if (awaited) shards_.notify_waiters();
  }

  // ---- the end of memory

  [[nodiscard]] void* allocate_scarce_slot(unsigned c) noexcept {
    return allocate_scarce(
        [this, c]() -> void* {
          void* const slot = shards_.find_slot(c);
          return slot == nullptr ? nullptr : on_allocate(c, slot);
        },
        Classes::slot_bytes(c));
  }
  // Tries `find` with everything locked, until it succeeds or no thread can make room. Pre: no lock is held.
  template <class Find>
  [[gnu::noinline]] void* allocate_scarce(const Find& find, std::size_t bytes) noexcept {
    bool waits = false, collected = false;
    void* block = nullptr;
    for (;;) {
      const std::uint32_t given = shards_.given();
      bool limited = false;
      {
        const All all(shards_);
        block = find();
        limited = slabs().refusal() == Refusal::kLimit;
      }
      if (block != nullptr || !limited) break;
      if (!collected && (collected = collect())) continue;
      if (options_.on_limit && options_.on_limit(bytes)) continue;
      if (options_.when_limited != WhenLimited::kWait) break;
      waits ? shards_.wait_for_room(given) : shards_.add_waiter();  // after which it looks once more
      waits = true;
    }
    if (waits) shards_.remove_waiter();
    return block;
  }

  // ---- scopes

  // Gives back what threads keep. False: no scope has used the heap. Pre: none of its locks is held.
  bool collect() noexcept { return scoped() != nullptr && (scoped()->engine->collect(scoped()), true); }
  [[nodiscard]] HeapStats stats_locked() noexcept {
    HeapStats stats;
    stats.name = options_.name;
    shards_.add_live(stats);
    slabs().add_to(stats);
    stats.conflicts = conflicts();
    return stats;
  }

  Shards shards_;
  typename A::template var<std::uint64_t> locked_for_fork_{0};  // the shards that before_fork() locked
  HeapOptions options_;
  typename A::template atomic<Scopes*> scopes_{nullptr};  // null: no scope has used it
  [[no_unique_address]] Registration registration_;
};

/// The private heap for any thread, on slabs of Freehold's engine.
using PrivateHeap = BasicPrivateHeap<sync::NativeAtomics, HeapGeometry, NodeSlabs<EngineSlabs>, Registered>;
static_assert(sizeof(PrivateHeap) <= 512);
// The first scope of this engine; null: no memory, or another engine's scopes use the heap.
[[nodiscard]] alloc::ScopedHeap* begin_scopes(PrivateHeap& heap, const alloc::ScopeEngine& engine) noexcept;
static_assert(PrivateHeapLike<PrivateHeap> && PrivateHeapLike<OwnerLockedHeap>);

}  // namespace freehold::heap

namespace freehold {
using heap::PrivateHeap;
}  // namespace freehold
