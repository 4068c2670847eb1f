// SPDX-License-Identifier: MIT
// A slab: 64 KiB of one private heap, cut into pages, each of which belongs to a size class. A header at its beginning leads
// from a bare pointer to the block's heap and class. Blocks above the largest class have the same header before them.
//
//   slab:         | header | perhaps the heap's own data | slots ... | page | page ...
//   large block:  | header | the block ...                       at a multiple of the slab's size; where the block itself
//                                                                must be at one, the header is the kHeaderBytes before it
//
//   Invariant: page_class[i] is 0 for a free page, whose bit in `open` is set; kInternal for the heap's own data; else
//              one more than the class. run_of[i] is the first page of the run that was given out together with page i.
//
// A header's heap, kind and classes do not change while a block in it is in use, so that reading them needs no lock.
#pragma once
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/base/poison.hpp"
#include "freehold/heap/size_classes.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::heap {

// Shards of a heap, a power of two. Cost: a load.
[[nodiscard]] unsigned heap_shards() noexcept;

// Its parameter says how the including file is compiled: see base/poison.hpp.
template <bool kAddressSanitizer>
struct HeapGeometryOf {
  static constexpr unsigned kPageShift = 12;
  using Classes = HeapClasses<16384>;
  // A batch travels between a CPU's free slots and the heap's in one go.
  static constexpr std::size_t kBatchBytes = 8192, kMinBatch = 4, kMaxBatch = 64;
  [[nodiscard]] static unsigned shards() noexcept { return heap_shards(); }
  // Chooses where a thread looks first.
  template <sync::Atomics A>
  [[nodiscard]] static std::uint32_t spread() noexcept {
    return A::thread_number();
  }
  // Takes of a shard in a row that make a thread its owner.
  static constexpr std::uint32_t kLocksToOwn = 64;
  // Threads that may own a shard, one after the other, in all its time; a power of two. Each has a word to say that it is
  // inside: one that finds out late that it is the owner no more writes there, too.
  static constexpr unsigned kOwners = 4;
};
using HeapGeometry = HeapGeometryOf<base::kAddressSanitizer>;

// Says whether each allocation and free is checked.
inline constexpr bool kSeesMisuse = base::kChecked || base::kAddressSanitizer;

// A free slot holds the address of the next one.
template <sync::Atomics A>
struct FreeSlot {
  typename A::template var<FreeSlot*> next;
};

// Which blocks of a slab are allocated, one bit for every place where one may begin; nothing but in a checked build and
// under AddressSanitizer. (Whether a block is poisoned does not tell: its user may have poisoned some of it.) Its atomics
// are native ones under the simulator, too: it is an observer.
template <std::size_t Places>
class AllocatedBlocks {
 public:
  // Both return whether the block was allocated before.
  bool on_allocate(std::size_t place) noexcept { return (words_[place / 64].fetch_or(mask(place)) & mask(place)) != 0; }
  bool on_free(std::size_t place) noexcept { return (words_[place / 64].fetch_and(~mask(place)) & mask(place)) != 0; }
  void clear() noexcept {
    for (auto& word : words_) word.store(0);
  }

 private:
  [[nodiscard]] static constexpr std::uint64_t mask(std::size_t place) noexcept { return base::bit(place % 64); }
  std::atomic<std::uint64_t> words_[Places / 64]{};
};
template <>
class AllocatedBlocks<0> {
 public:
  static constexpr void clear() noexcept {}
};

enum class SlabKind : std::uint8_t { kPages, kLarge };

template <sync::Atomics A, class Geometry>
struct Slab {
  static constexpr unsigned kPages = 16;
  static constexpr std::size_t kPageBytes = std::size_t{1} << Geometry::kPageShift;
  static constexpr std::size_t kBytes = kPages * kPageBytes;
  static constexpr std::size_t kHeaderBytes = kSeesMisuse ? 256 + kBytes / (8 * Geometry::Classes::kGranule) : 256;
  static constexpr std::uint8_t kFree = 0, kInternal = 255;
  static constexpr std::uint16_t kAllPages = 0xffff;
  static_assert(Geometry::Classes::kCount < kInternal - 1U && Geometry::Classes::kMaxBytes <= kBytes / 4);

  template <class T>
  using var = typename A::template var<T>;

  typename A::template atomic<void*> heap;  // null: it has ended
  var<SlabKind> kind;
  var<std::uint8_t> page_class[kPages];
  var<void*> memory;  // the memory that came from the source, and its alignment
  var<std::size_t> alignment;
  var<std::size_t> large_bytes;  // bytes of a large block; 0 for a slab
  var<Slab*> next;               // all slabs of the heap, or all its large blocks
  var<Slab*> previous;
  var<Slab*> next_open;  // the slabs that have free pages
  var<Slab*> previous_open;
  var<std::uint32_t> slots_begin;  // bytes from the slab's beginning to where slots may lie; a multiple of kMaxAlignment
  var<std::uint16_t> open;
  var<std::uint8_t> run_of[kPages];
  [[no_unique_address]] AllocatedBlocks<kSeesMisuse ? kBytes / Geometry::Classes::kGranule : 0> allocated;
  var<std::uint16_t> free_slots[kPages];            // by the run's first page, while they are counted; else 0
  typename A::template atomic<std::uint32_t> left;  // of a heap that has ended: blocks in use

  // The header of the slab, or of the large block, that `block` lies in. Pre: a block of a private heap.
  [[nodiscard]] static Slab* of(const void* block) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    const std::uintptr_t offset = address & (kBytes - 1);
    return reinterpret_cast<Slab*>(offset == 0 ? address - kHeaderBytes : address - offset);
  }
  [[nodiscard]] std::byte* start() noexcept { return reinterpret_cast<std::byte*>(this); }
  [[nodiscard]] unsigned page_of(const void* block) const noexcept {
    return static_cast<unsigned>((reinterpret_cast<std::uintptr_t>(block) & (kBytes - 1)) >> Geometry::kPageShift);
  }
  [[nodiscard]] static std::size_t place_of(const void* block) noexcept {
    return (reinterpret_cast<std::uintptr_t>(block) & (kBytes - 1)) / Geometry::Classes::kGranule;
  }
  // The slots of the run that begins with page `first`.
  [[nodiscard]] std::byte* run_begin(unsigned first) noexcept {
    const std::size_t begin = first * kPageBytes;
    return start() + (begin < slots_begin.load() ? slots_begin.load() : begin);
  }
  [[nodiscard]] unsigned run_end_page(unsigned first) const noexcept {
    unsigned end = first + 1;
    while (end < kPages && page_class[end].load() != kFree && run_of[end].load() == first) ++end;
    return end;
  }
  [[nodiscard]] std::size_t run_slots(unsigned first) noexcept {
    const std::byte* const end = start() + run_end_page(first) * kPageBytes;
    return static_cast<std::size_t>(end - run_begin(first)) / Geometry::Classes::slot_bytes(page_class[first].load() - 1U);
  }
  // Returns whether `block` is the beginning of a slot of class c.
  [[nodiscard]] bool is_slot(const void* block, unsigned c) noexcept {
    const unsigned page = page_of(block);
    if (page_class[page].load() != c + 1) return false;
    const std::byte* const begin = run_begin(run_of[page].load());
    const auto offset = static_cast<const std::byte*>(block) - begin;
    return offset >= 0 && static_cast<std::size_t>(offset) % Geometry::Classes::slot_bytes(c) == 0;
  }

  // ---- pages

  // Pages `first` to `first + pages` of a slab.
  struct Range {
    unsigned first = 0;
    unsigned pages = 0;
  };
  // The first range of `pages` free pages, else the longest one that holds a slot of class c.
  [[nodiscard]] Range free_range(unsigned c, unsigned pages) noexcept {
    Range best;
    for (unsigned free = open.load(), first = 0; free >> first != 0;) {
      first += static_cast<unsigned>(std::countr_zero(free >> first));
      const auto length = static_cast<unsigned>(std::countr_one(free >> first));
      const Range range{first, length < pages ? length : pages};
      const std::byte* const end = start() + (first + range.pages) * kPageBytes;
      const bool holds_a_slot = static_cast<std::size_t>(end - run_begin(first)) >= Geometry::Classes::slot_bytes(c);
      if (holds_a_slot && range.pages > best.pages) best = range;
      if (best.pages == pages) break;
      first += holds_a_slot ? length : 1;  // from a slab's second page on, all of the pages is slots
    }
    return best;
  }
  // Makes free pages a run.
  void mark_run(Range range, std::uint8_t new_class) noexcept {
    for (unsigned page = range.first; page < range.first + range.pages; ++page) {
      page_class[page].store(new_class);
      run_of[page].store(static_cast<std::uint8_t>(range.first));
    }
    const auto mask = static_cast<std::uint16_t>(base::low_bits(range.pages) << range.first);
    open.store(static_cast<std::uint16_t>(open.load() & ~mask));
  }
  void mark_free(unsigned page) noexcept {
    page_class[page].store(kFree);
    open.store(static_cast<std::uint16_t>(open.load() | base::bit(page)));
  }

  // Slots that are in use, while the free ones are counted.
  [[nodiscard]] std::uint32_t used_slots() noexcept {
    std::size_t used = 0;
    for (unsigned page = 0; page < kPages; ++page)
      if (const std::uint8_t c = page_class[page].load(); c != kFree && c != kInternal && run_of[page].load() == page)
        used += run_slots(page) - free_slots[page].load();
    return static_cast<std::uint32_t>(used);
  }

  // ---- runs whose slots are all free, while they are counted

  static void count_free(const void* slot, std::uint16_t slots) noexcept {
    Slab* const slab = of(slot);
    auto& counted = slab->free_slots[slab->run_of[slab->page_of(slot)].load()];
    counted.store(static_cast<std::uint16_t>(counted.load() + slots));
  }
  [[nodiscard]] bool is_free_run(unsigned first) noexcept { return free_slots[first].load() == run_slots(first); }
  [[nodiscard]] static bool is_in_free_run(const void* slot) noexcept {
    Slab* const slab = of(slot);
    return slab->is_free_run(slab->run_of[slab->page_of(slot)].load());
  }
};
static_assert(sizeof(Slab<sync::NativeAtomics, HeapGeometry>) <= Slab<sync::NativeAtomics, HeapGeometry>::kHeaderBytes);

}  // namespace freehold::heap
