// What the arena knows about one span of 64 KiB, in one place: the free bits of its slots, or its part in a run of spans.
// Found by index from the address; the owner byte (size class) lies apart, dense, since every free reads it.
#pragma once
#include <atomic>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/pool/word_pool.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::alloc {

using SpanIndex = std::uint32_t;
inline constexpr SpanIndex kNoSpan = ~SpanIndex{0};

enum class SpanState : std::uint8_t {
  kNone,     // beyond the frontier, or inside a run
  kSlots,    // belongs to a size class
  kFree,     // a single free span of the small region
  kRun,      // first span of a run in use
  kFreeRun,  // first span of a free run
  kFreeTail  // last span of a free run of two or more
};

// What a look at a span found, in bits that are dropped when slots of the span are handed out. All are hints: a stale one
// costs a system call or a missed purge.
struct PageHints {
  static constexpr unsigned kPages = 16;
  static constexpr std::uint64_t kReturned = 0xffff;                // one bit a page: it was given back to the system
  static constexpr unsigned kIdleShift = kPages;                    // one bit a page: it was wholly free at the last look
  static constexpr std::uint64_t kLooked = std::uint64_t{1} << 32;  // the span looked wholly free at the last look
};

template <sync::Atomics A, unsigned kWords>
struct alignas(base::kCacheLine) Span {
  // Any thread.
  typename A::template atomic<std::uint64_t> summary;
  typename A::template atomic<std::uint64_t> page_hints;
  // Under the arena's lock. Runs: `length` is valid at the first span, `first` at a kFreeTail.
  SpanState state;
  bool dirty;        // free, and may still hold pages
  SpanIndex length;  // spans in the run
  SpanIndex first;
  SpanIndex next, previous;  // in the list of free runs
  std::uint32_t pages;       // of a run in use: pages asked for
  std::uint64_t freed_at;    // milliseconds, when it became free
  // Any thread: one bit a slot, set when free.
  alignas(base::kCacheLine) typename A::template atomic<std::uint64_t> words[kWords];
};
static_assert(sizeof(Span<sync::NativeAtomics, 64>) == 576);

}  // namespace freehold::alloc
