// What the models of the arena and of the core share: a configuration with eight spans of two pages, and a page source
// whose pages are stamps. Each page carries a plain stamp, 0 when nobody uses it, else 1 + the number of the thread that
// does; the page source writes the stamps of what it purges. So a page handed out twice, purged while in use, or reused
// without its former user's writes, is a data race or a wrong stamp.
#pragma once
#include <cstddef>
#include <cstdint>

#include "freehold/alloc/span.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/pool/word_pool.hpp"
#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"

namespace freehold::model {

// What a mutant may change: hide one of these.
struct Faithful {
  using Atomics = sim::SimAtomics;
  using Orders = pool::WordPoolOrders;
};

// Spans of two pages. Class 1: slots of `kSlotBytes`; classes 2 and 3: one slot that touches both pages; 3 is too large
// for the dense half.
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

inline constexpr alloc::SpanIndex kHalf = 4;            // spans of each half
inline constexpr unsigned kPagesInAll = 2 * kHalf * 2;  // of both halves

template <class Traits, class Layout>
struct TinyConfig {
  struct Classes {
    static constexpr std::size_t kCount = 4;
    static constexpr std::size_t kMaxBytes = 2 * Layout::kPage;
    static constexpr std::size_t kTableBytes = 16;
    static constexpr unsigned class_of(std::size_t) noexcept { return 1; }
    static constexpr std::size_t slot_bytes(unsigned c) noexcept {
      return c == 1 ? Layout::kSlotBytes : c == 2 ? Layout::kPage + Layout::kPage / 2 : 2 * Layout::kPage;
    }
  };
  using Orders = typename Traits::Orders;

  static constexpr unsigned kSpanShift = Layout::kSpanShift;
  static constexpr unsigned kWordsPerSpan = ((1U << Layout::kSpanShift) / Layout::kSlotBytes + 63) / 64;
  static constexpr std::size_t kPageBytes = Layout::kPage;
  static constexpr std::size_t kBaseAlignment = 2 * Layout::kPage;
  static constexpr std::size_t kDenseMaxBytes = Classes::slot_bytes(2);
  static constexpr alloc::SpanIndex kFirstStepSpans = 1, kMaxStepSpans = 1, kReserveStepSpans = 1, kHugeAfterSpans = 100;
  static constexpr std::uint64_t kRetainBytes = 1 << 20, kScanMinBytes = 1 << 20;
  static constexpr unsigned kStepPlaces = 1;
  static std::uintptr_t step_place(unsigned, std::size_t) noexcept { return 0; }

  // Thread caches of two slots a class, which begin with one.
  static constexpr std::size_t kBinBytes = 4 * Layout::kPage;
  static constexpr unsigned kMaxSlots = 2, kFirstSlots = 1;
  static constexpr std::size_t kFirstBytes = 2 * Layout::kPage;
  static constexpr std::size_t kThreadBytes = 8 * Layout::kPage;
  static constexpr std::size_t kThreadMaxBytes = 16 * Layout::kPage;
  static constexpr std::size_t kBudgetStepBytes = Layout::kPage;

  template <class T>
  static T* table(void* memory, std::size_t) noexcept {
    return static_cast<T*>(memory);
  }
};

// A page source over arrays of its own. The arena's memory is addresses only.
template <class Layout>
struct TinyPages {
  static constexpr std::size_t kPage = Layout::kPage;

  void* map(std::size_t bytes) {
    if (bytes > sizeof table) return chunk;  // of records
    return table;
  }
  void* reserve(std::size_t bytes, std::size_t alignment) {
    SIM_CHECK(bytes <= (alignment == kPage ? sizeof spans : sizeof memory));
    return alignment == kPage ? spans : memory;
  }
  bool purge(void* address, std::size_t bytes) {
    write(page_of(address), static_cast<unsigned>(bytes / kPage), 0, 0);
    return true;
  }
  bool reserve_at(void*, std::size_t) { return false; }
  bool commit(void*, std::size_t) { return true; }
  void advise_huge(void*, std::size_t) {}
  bool move(void*, void*, std::size_t) { return false; }
  void release(void*, std::size_t) {}

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
    return static_cast<unsigned>((static_cast<const std::byte*>(address) - memory) / static_cast<std::ptrdiff_t>(kPage));
  }

  alignas(kPage) std::byte table[1024] = {};
  alignas(kPage) std::byte spans[4096] = {};
  alignas(2 * kPage) std::byte memory[kPagesInAll * kPage];  // never touched
  std::byte* chunk = nullptr;                                // zeroed memory for records, if any are needed
  sim::SimAtomics::var<unsigned> stamps[kPagesInAll];
};
static_assert(os::PageSource<TinyPages<OneWord>>);

// Mutants of the machine underneath.
template <template <class> class Atomic>
struct On : Faithful {
  struct Atomics : sim::SimAtomics {
    template <class T>
    using atomic = Atomic<T>;
  };
};

}  // namespace freehold::model
