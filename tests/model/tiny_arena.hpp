// SPDX-License-Identifier: MIT
// For the models of the arena and of the core: a configuration with two chunks of four spans of two pages, and a page source
// whose pages are stamps. Each page carries a plain stamp, 0 when no thread uses it, else 1 + the number of the thread that
// does; the page source writes the stamps of what it purges. So a page handed out twice, purged while in use, or reused
// without its former user's writes, is a data race or a wrong stamp.
#pragma once
#include <cstddef>
#include <cstdint>

#include "freehold/alloc/spans/arena.hpp"
#include "freehold/alloc/spans/chunk_pool.hpp"
#include "freehold/alloc/spans/span.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/slots/word_pool.hpp"
#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"

namespace freehold::model {

// A mutant may hide one of these.
struct Faithful {
  using Atomics = sim::SimAtomics;
  using Orders = pool::WordPoolOrders;
  using ChunkOrders = alloc::ChunkPoolOrders;
  using SpanOrders = alloc::ArenaOrders;
  using RunOrders = alloc::RunCacheOrders;
  static constexpr unsigned kNodes = 1;
  static constexpr unsigned kReclaimedForRuns = 0;  // explored apart: it makes each scenario with runs too long
};
// The spans of odd threads on one memory node, those of even ones on the other.
struct TwoNodes : Faithful {
  static constexpr unsigned kNodes = 2;
};
struct Reclaiming : Faithful {
  static constexpr unsigned kReclaimedForRuns = 1;
};

// Spans of two pages. Class 1: slots of `kSlotBytes`; classes 2 and 3: one slot that touches both pages; 3 is too large
// for chunks of small classes.
struct OneWord {
  static constexpr unsigned kSpanShift = 8;
  static constexpr std::size_t kPage = 128;
  static constexpr std::size_t kSlotBytes = kPage;  // two slots, each its own page
};
struct TwoWords {
  static constexpr unsigned kSpanShift = 11;
  static constexpr std::size_t kPage = 1024;
  static constexpr std::size_t kSlotBytes = 16;  // 128 slots, in two words
};

inline constexpr alloc::SpanIndex kChunk = 4;  // spans of a chunk, of which there are two: one of each kind at first
inline constexpr unsigned kPagesInAll = 2 * kChunk * 2;  // pages of both

template <class Traits, class Layout>
struct TinyConfig {
  struct Classes {
    static constexpr std::size_t kCount = 4;
    static constexpr std::size_t kMaxBytes = 2 * Layout::kPage;
    static constexpr std::size_t kTableBytes = 16;
    static constexpr alloc::SizeClass class_of(std::size_t) noexcept { return alloc::SizeClass{1}; }
    static constexpr std::size_t slot_bytes(alloc::SizeClass c) noexcept {
      return c.index() == 1 ? Layout::kSlotBytes : c.index() == 2 ? Layout::kPage + Layout::kPage / 2 : 2 * Layout::kPage;
    }
  };
  using Orders = typename Traits::Orders;
  static unsigned node() noexcept
    requires(Traits::kNodes > 1)
  {
    return (sim::thread_index() + 1) % Traits::kNodes;  // as the ids that the worlds use
  }

  static constexpr unsigned kSpanShift = Layout::kSpanShift;
  static constexpr unsigned kWordsPerSpan = ((1U << Layout::kSpanShift) / Layout::kSlotBytes + 63) / 64;
  static constexpr std::size_t kPageBytes = Layout::kPage;
  [[nodiscard]] static constexpr std::size_t page_bytes() noexcept { return kPageBytes; }
  static constexpr std::size_t kBaseAlignment = 2 * Layout::kPage;
  static constexpr std::size_t kSlotChunkMaxBytes = Classes::slot_bytes(alloc::SizeClass{2});
  using ChunkOrders = typename Traits::ChunkOrders;
  using SpanOrders = typename Traits::SpanOrders;
  static constexpr unsigned kChunkSpans = kChunk;
  static constexpr unsigned kReclaimedForRuns = Traits::kReclaimedForRuns;
  static constexpr std::uint32_t kMaxExtentChunks = 1;
  static constexpr std::size_t kTableStepSpans = 2 * kChunk;
  static constexpr unsigned kShards = 4;
  static constexpr std::int64_t kKeepBytes = 1 << 20, kKeepShare = 1, kRegretBytes = 1 << 20;
  static constexpr std::size_t kHugeAfterBytes = 0, kMostRunBytes = ~std::size_t{0};

  // Thread caches of two slots a class, which begin with one.
  static constexpr std::size_t kBinBytes = 4 * Layout::kPage;
  static constexpr unsigned kMinSlots = 2;
  static constexpr unsigned kMaxSlots = 2, kFirstSlots = 1, kBurstSlots = 2;
  static constexpr std::size_t kBurstBytes = kBinBytes;
  static constexpr std::size_t kFirstBytes = 2 * Layout::kPage;
  static constexpr std::size_t kThreadBytes = 8 * Layout::kPage;
  static constexpr std::size_t kThreadMaxBytes = 16 * Layout::kPage;
  static constexpr std::size_t kBudgetStepBytes = Layout::kPage;
  using RunOrders = typename Traits::RunOrders;
  static constexpr unsigned kReservedWords = 2;
};

// A page source over arrays that it owns. The arena's memory is addresses only.
template <class Layout>
struct TinyPages {
  static constexpr std::size_t kPage = Layout::kPage;
  static constexpr std::size_t kStorageBytes = 12 * 1024 + kPagesInAll * kPage;

  void* place(unsigned attempt, std::size_t bytes, std::size_t) {
    SIM_CHECK(bytes <= sizeof storage);
    return attempt == 0 ? storage : nullptr;
  }
  bool map_at(void* address, std::size_t bytes) {
    if (memory != 0 && is_memory(address) && stamps[page_of(address)].load() == kUnmapped)
      stamp(address, bytes, kUnmapped, 0);
    return true;
  }
  bool guard_at(void*, std::size_t) { return true; }
  void* map(std::size_t) { return chunk; }  // memory for records
  bool unmap(void* address, std::size_t bytes) {
    if (is_memory(address)) stamp(address, bytes, 0, kUnmapped);
    return true;
  }
  bool purge(void* address, std::size_t bytes) {
    if (is_memory(address)) stamp(address, bytes, 0, 0);
    return true;
  }
  void* remap(void*, std::size_t, std::size_t) { return nullptr; }
  bool move_onto(void*, void*, std::size_t) { return false; }
  void* move_out(void*, std::size_t, std::size_t) { return nullptr; }
  void advise_huge(void*, std::size_t, bool) {}
  void populate(void*, std::size_t) {}
  void name(void*, std::size_t, const char*) {}
  bool is_locked(void*) { return false; }
  std::size_t address_limit() { return SIZE_MAX; }
  std::uint64_t most_mappings() { return 0; }

  static constexpr unsigned kUnmapped = ~0U;  // a stamp
  // Not tables, which are zero already, and stay.
  [[nodiscard]] bool is_memory(const void* address) const { return reinterpret_cast<std::uintptr_t>(address) >= memory; }
  void stamp(const void* address, std::size_t bytes, unsigned expected, unsigned next) {
    write(page_of(address), static_cast<unsigned>(bytes / kPage), expected, next);
  }
  // Changes the stamps of `count` pages, which must all be `expected`.
  void write(unsigned first, unsigned count, unsigned expected, unsigned next) {
    for (unsigned p = first; p < first + count; ++p) {
      SIM_CHECK(stamps[p].load() == expected);
      stamps[p].store(next);
    }
  }
  // The same for the pages of a slot. Small slots share pages, which then carry no stamp.
  void write_slot(const void* slot, unsigned c, unsigned expected, unsigned next) {
    if (c != 1 || Layout::kSlotBytes == kPage) write(page_of(slot), c == 1 ? 1 : 2, expected, next);
  }
  unsigned page_of(const void* address) const {
    return static_cast<unsigned>((reinterpret_cast<std::uintptr_t>(address) - memory) / kPage);
  }

  alignas(2 * kPage) std::byte storage[kStorageBytes] = {};  // the arena's tables, and its memory, which is never touched
  std::uintptr_t memory = 0;                                 // where the arena begins
  std::byte* chunk = nullptr;                                // zeroed memory for records, if any are needed
  sim::SimAtomics::var<unsigned> stamps[kPagesInAll];
};
static_assert(os::PageSource<TinyPages<OneWord>>);

// Mutants: other orders of the slots' words, and of the machine underneath.
template <class O>
struct Ordered : Faithful {
  using Orders = O;
};
template <template <class> class Atomic>
struct On : Faithful {
  struct Atomics : sim::SimAtomics {
    template <class T>
    using atomic = Atomic<T>;
  };
};

}  // namespace freehold::model
