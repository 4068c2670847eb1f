// SPDX-License-Identifier: MIT
// A private heap for one thread at a time, as HEAP_NO_SERIALIZE was. The caller's lock, which guards the objects anyhow,
// guards their memory, too; there is no lock and no atomic inside.
//
//   freehold::OwnerLockedHeap heap({.name = "session"});
//   void* block = heap.allocate(100);
//   heap.deallocate(block, 100);
//
// A free list and a bump pointer for each size class; memory comes in slabs from the engine (slabs.hpp). An object costs its
// size, rounded up to 8 bytes; contents and free list are in the same place, which the caller has in its cache.
//
//   Invariant: live objects of class c + its free slots + its uncut slots == slots of the runs that belong to c.
//
// Threads: externally locked, as a whole, every member function but name().
// allocate, deallocate: nine and eleven instructions where the size is a constant, the return included. release_all and the
// destructor: a call to the engine for each slab of 64 KiB, however many objects live.
// Source: "Practical testing 30: reducing contention", and "Scaling of memory intensive applications" (a heap per object).
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/check/claim.hpp"
#include "freehold/heap/bins.hpp"
#include "freehold/heap/concept.hpp"
#include "freehold/heap/heap_options.hpp"
#include "freehold/heap/slabs.hpp"

namespace freehold::heap {

/// A private heap for one thread at a time; programs use it as `freehold::OwnerLockedHeap`.
/// Threads: externally locked, as a whole, every member function but name().
template <sync::Atomics A, class Geometry, SlabSource Source>
class BasicOwnerLockedHeap {
 public:
  /// The size classes of blocks.
  using Classes = typename Geometry::Classes;
  /// The alignment of blocks that are allocated without one: 16.
  static constexpr std::size_t kDefaultAlignment = alignof(std::max_align_t);
  /// Says whether any thread may use the heap at any time.
  static constexpr bool kShared = false;

  /// A new heap, which takes no memory before its first block.
  /// @param options  name, limit and behaviour at the limit, which cannot be to wait
  /// @param source   where slabs come from
  explicit BasicOwnerLockedHeap(const HeapOptions& options = {}, Source source = {}) noexcept
      : slabs_(this, options.limit_bytes.value_or(SIZE_MAX), placed(source, options)), options_(options) {
    FREEHOLD_ASSERT(options.when_limited != WhenLimited::kWait);  // no other thread could give anything back
  }
  BasicOwnerLockedHeap(const BasicOwnerLockedHeap&) = delete;
  BasicOwnerLockedHeap& operator=(const BasicOwnerLockedHeap&) = delete;
  /// Ends every block; destructors of objects do not run.
  ~BasicOwnerLockedHeap() = default;

  /// A block of at least `bytes` bytes; its contents are arbitrary.
  /// @param bytes      size; 0 is served as 1
  /// @param alignment  a power of two
  /// @return the block. Null if the limit is reached or memory is exhausted. Cost: nine instructions.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = kDefaultAlignment) noexcept {
    FREEHOLD_ASSERT(std::has_single_bit(alignment));
    if (!is_small(bytes, alignment)) [[unlikely]]
      return allocate_large(bytes, alignment);
    const unsigned c = class_of(bytes, alignment);
    if constexpr (!base::kChecked) {
      if (void* const slot = fast_->pop(c); slot != nullptr) [[likely]]
        return slot;
    }
    return allocate_slow(bytes, alignment);
  }

  /// Frees a block.
  /// @param block      a block of this heap, or null
  /// @param bytes      the size that it was allocated with
  /// @param alignment  the alignment that it was allocated with
  /// Cost: eleven instructions.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment = kDefaultAlignment) noexcept {
    if (block == nullptr) return;
    if (!is_small(bytes, alignment)) [[unlikely]]
      return deallocate_large(block, bytes, alignment);
    if (is_careful()) [[unlikely]]
      return deallocate_carefully(block, bytes, alignment);
    push(class_of(bytes, alignment), block);
  }

  /// The same without the size, which the block's slab knows: one more cache line.
  /// @param block  a block of this heap, or null
  void deallocate(void* block) noexcept {
    if (block == nullptr) return;
    if (is_careful()) [[unlikely]]
      return deallocate_carefully(block);
    SlabType* const slab = slabs_.find(block);
    if (slab == nullptr) return;
    if (slab->kind.load() == SlabKind::kLarge) [[unlikely]]
      return slabs_.give_large(block);
    if (const unsigned c = slabs_.class_in(*slab, block); c != SlabsType::kNoClass) push(c, block);
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
    return !slabs_.is_checked() && base::is_aligned(reinterpret_cast<std::uintptr_t>(block), kDefaultAlignment) &&
           SlabsType::serves_as(block, c, bytes);
  }

  /// The bytes of a block that may be used: at least what was asked for.
  /// @param block  a block of this heap
  [[nodiscard]] std::size_t usable_size(const void* block) const noexcept { return slabs_.usable_size(block); }
  /// The heap that a block belongs to.
  /// @param block  a block of any heap of this type
  [[nodiscard]] static BasicOwnerLockedHeap& heap_of(const void* block) noexcept {
    return *static_cast<BasicOwnerLockedHeap*>(SlabsType::heap_of(block));
  }

  /// An STL allocator on this heap, for containers and as what std::execution's get_allocator asks an environment for.
  /// @tparam T  the type of the objects; any other can be had from it by conversion
  template <class T = std::byte>
  [[nodiscard]] HeapAllocator<T, BasicOwnerLockedHeap> get_allocator() noexcept {
    return *this;
  }

  /// Ends every block; destructors of objects do not run. All memory goes back to the engine, except one slab. Cost: O(slabs
  /// and large blocks). @return 0, as PrivateHeap where no block is held.
  std::size_t release_all() noexcept {
    slabs_.release_all();
    if (core_ != nullptr) core_->begin();
    reclaim_from_bytes_ = kReclaimBytes;
    return 0;
  }

  /// Gives wholly free slabs back to the engine. @return bytes. Cost: O(free slots).
  std::size_t trim() noexcept { return core_ == nullptr ? 0 : reclaim(); }

  /// Takes slabs in advance.
  /// @param bytes  how much more than is in use
  /// @return false if there is no memory, or the limit does not allow so much.
  [[nodiscard]] bool reserve(std::size_t bytes) noexcept {
    return slabs_.is_checked() ? slabs_.allows(bytes) : start() && slabs_.reserve(bytes);
  }

  /// A snapshot.
  [[nodiscard]] HeapStats stats() const noexcept {
    HeapStats stats;
    stats.name = options_.name;
    if (core_ != nullptr) core_->add_live(stats);
    slabs_.add_to(stats);
    return stats;
  }
  /// The name that the options gave. Threads: any.
  [[nodiscard]] const char* name() const noexcept { return options_.name; }

 private:
  friend struct Inside;  // tests/support/inside.hpp
  using SlabsType = Slabs<A, Geometry, Source>;
  using SlabType = typename SlabsType::SlabType;
  using BinsType = Bins<A, Geometry>;
  struct Core : BinsType {
    std::size_t run_bytes[Classes::kCount]{};  // bytes of the runs that each class was given since it started over

    void begin() noexcept {
      this->clear();
      for (std::size_t& bytes : run_bytes) bytes = 0;
    }
  };

  // A class starts over when its runs have so many bytes, and so large a share of the heap's slabs that the pass costs
  // little for each of their slots.
  static constexpr std::size_t kAnewBytes = std::size_t{64} << 10, kAnewShare = 16;
  // Free slots are looked through for whole pages when the heap would grow beyond this, and has grown by a half since.
  static constexpr std::size_t kReclaimBytes = std::size_t{1} << 20;

  // Ends the process in a checked build if an invariant does not hold.
  void check_invariants() noexcept {
    slabs_.check_invariants();
    for (unsigned c = 0; core_ != nullptr && c < Classes::kCount; ++c)
      FREEHOLD_ASSERT(static_cast<std::size_t>(core_->bins[c].live.load()) + core_->free_slots(c, slabs_) ==
                      slabs_.slots_of(c));
  }

  [[nodiscard]] static constexpr bool is_small(std::size_t bytes, std::size_t alignment) noexcept {
    return bytes <= Classes::kMaxBytes - SlabsType::kRedZone && alignment <= Classes::kMaxAlignment;
  }
  [[nodiscard]] static constexpr unsigned class_of(std::size_t bytes, std::size_t alignment) noexcept {
    return Classes::class_of(SlabsType::with_red_zone(bytes), alignment);
  }
  // Returns whether every block's coming and going has to be looked at; the fast paths are off then.
  [[nodiscard]] bool is_careful() const noexcept { return base::kChecked || slabs_.poison().watched(); }

  [[nodiscard]] bool start() noexcept {
    if (core_ != nullptr) return true;
    void* const room = slabs_.start(sizeof(Core));
    if (room == nullptr) return false;
    core_ = ::new (room) Core;
    if (!is_careful()) fast_ = core_;
    return true;
  }

  [[gnu::noinline]] void* allocate_slow(std::size_t bytes, std::size_t alignment) noexcept {
    if (slabs_.is_checked()) return allocate_large(bytes, alignment);
    if (!start()) return nullptr;
    const unsigned c = class_of(bytes, alignment);
    for (;;) {
      if (void* const slot = core_->pop_watched(c, slabs_); slot != nullptr) {
        slabs_.on_allocate(c, slot);
        return slot;
      }
      if (!refill(c) && !asks_for_room(Classes::slot_bytes(c))) return nullptr;
    }
  }
  // A run for class c: twice as long as the last one, up to a slab.
  [[nodiscard]] bool refill(unsigned c) noexcept {
    if (slabs_.used_bytes() >= reclaim_from_bytes_) reclaim();
    typename BinsType::Bin& bin = core_->bins[c];
    auto run = slabs_.take_pages(c, pages_[c] + 1U);
    if (run.begin == nullptr && slabs_.refusal() == Refusal::kLimit && reclaim_pages()) run = slabs_.take_pages(c, 1);
    if (run.begin == nullptr) return false;
    bin.next.store(run.begin);
    bin.end.store(run.end);
    core_->run_bytes[c] += static_cast<std::size_t>(run.end - run.begin);
    pages_[c] = static_cast<std::uint8_t>(std::min(2 * pages_[c] + 1, 15));
    return true;
  }
  std::size_t reclaim() noexcept {
    const std::size_t bytes = slabs_.reclaim([this](unsigned c) -> auto& { return core_->bins[c].free; },
                                             [this](const auto& visit) {
                                               for (unsigned c = 0; c < Classes::kCount; ++c) {
                                                 auto& bin = core_->bins[c];
                                                 if (visit(c, bin.next.load(), bin.end.load()))
                                                   bin.next.store(bin.end.load());
                                               }
                                             });
    reclaim_from_bytes_ = std::max(kReclaimBytes, slabs_.used_bytes() + slabs_.used_bytes() / 2);
    return bytes;
  }
  // Returns whether there is more room below the limit now.
  [[nodiscard]] bool reclaim_pages() noexcept {
    const std::size_t before = slabs_.used_bytes();
    reclaim();
    return slabs_.used_bytes() < before;
  }
  [[nodiscard]] bool asks_for_room(std::size_t bytes) noexcept {
    return slabs_.refusal() == Refusal::kLimit && options_.on_limit && options_.on_limit(bytes);
  }

  void push(unsigned c, void* block) noexcept {
    if (core_->push(c, block)) [[unlikely]]
      begin_anew(c);
  }
  [[gnu::noinline]] void deallocate_carefully(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (slabs_.is_checked()) return slabs_.give_checked(block, {check::Family::kHeap, bytes, alignment});
    push_carefully(class_of(bytes, alignment), block);
  }
  [[gnu::noinline]] void deallocate_carefully(void* block) noexcept {
    if (slabs_.is_checked())
      return slabs_.give_checked(block, {check::Family::kHeap, check::Claim::kUnsaid, check::Claim::kUnsaid});
    SlabType* const slab = slabs_.find(block);
    if (slab == nullptr) return;
    if (slab->kind.load() == SlabKind::kLarge) return slabs_.give_large(block);
    if (const unsigned c = slabs_.class_in(*slab, block); c != SlabsType::kNoClass) push_carefully(c, block);
  }
  void push_carefully(unsigned c, void* block) noexcept {
    if (slabs_.on_free(c, block) && core_->push_watched(c, block, slabs_)) begin_anew(c);
  }
  // The last object of a class has ended: its runs are free pages again. The next objects lie side by side in the order in
  // which they are made, not in that in which the former ones ended. Only where that is worth a pass over all slabs.
  [[gnu::noinline]] void begin_anew(unsigned c) noexcept {
    std::size_t& run_bytes = core_->run_bytes[c];
    if (run_bytes < kAnewBytes || run_bytes < slabs_.held_bytes() / kAnewShare) return;
    slabs_.take_runs_back(c);
    run_bytes = 0;
    core_->bins[c].clear();
  }

  [[gnu::noinline]] void* allocate_large(std::size_t bytes, std::size_t alignment) noexcept {
    for (;;) {
      void* const block = slabs_.is_checked() ? slabs_.take_checked(bytes, alignment) : slabs_.take_large(bytes, alignment);
      if (block != nullptr) return block;
      if (slabs_.refusal() == Refusal::kLimit && core_ != nullptr && reclaim_pages()) continue;
      if (!asks_for_room(bytes)) return nullptr;
    }
  }
  // The size and alignment are of interest in checked mode alone.
  [[gnu::noinline]] void deallocate_large(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (slabs_.is_checked()) return slabs_.give_checked(block, {check::Family::kHeap, bytes, alignment});
    slabs_.give_large(block);
  }

  inline static constinit BinsType g_nothing{};  // what pop() finds before the first block, and where it may not look

  BinsType* fast_ = &g_nothing;
  Core* core_ = nullptr;
  SlabsType slabs_;
  HeapOptions options_;
  std::size_t reclaim_from_bytes_ = kReclaimBytes;
  std::array<std::uint8_t, Classes::kCount> pages_{};  // pages of the class's last run, minus one; grows to a slab's
};

/// The private heap for one thread at a time, on slabs of Freehold's engine.
using OwnerLockedHeap = BasicOwnerLockedHeap<sync::NativeAtomics, HeapGeometry, NodeSlabs<EngineSlabs>>;
static_assert(sizeof(OwnerLockedHeap) <= 512);

}  // namespace freehold::heap

namespace freehold {
using heap::OwnerLockedHeap;
}  // namespace freehold
