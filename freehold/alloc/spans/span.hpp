// SPDX-License-Identifier: MIT
// The arena's records of one span of 64 KiB that belongs to a size class, found by index from the address. They lie in
// tables of their own: the span's class, which every free reads; its hints, of which a search reads many; the free bits of
// its slots (ArenaSlots::WordTable); and the rest. chunk_pool.hpp knows which spans are free.
#pragma once
#include <atomic>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/slots/word_pool.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::alloc {

using SpanIndex = std::uint32_t;
inline constexpr SpanIndex kNoSpan = ~SpanIndex{0};

// The results of a look at a span, in bits that are dropped when slots of the span are handed out. All are hints: a stale
// one costs a system call or a missed purge.
struct PageHints {
  static constexpr std::uint64_t kReturned = 0xffff;                 // one bit a page: it was given back to the system
  static constexpr std::uint64_t kLooked = std::uint64_t{1} << 32;   // the span was seen by the last look for empty ones
  static constexpr std::uint64_t kDrained = std::uint64_t{1} << 33;  // the same by the last look for free pages
};

// Any thread. A line each, since the threads that use neighbouring spans write there.
template <sync::Atomics A>
struct alignas(base::kCacheLine) Span {
  // One for the classes of each table of words: a stale bit of a former class must not lead into the next span's words.
  typename A::template atomic<std::uint64_t> summaries[2];
  typename A::template atomic<std::uint64_t> page_hints;
  typename A::template atomic<std::uint32_t> home;  // the memory node of its pages: a hint
};

// A drain reads this for each word that it gives back, in one line.
template <sync::Atomics A>
struct SpanHints {
  typename A::template atomic<std::uint32_t> last_user;  // a LastUser
  // 1: the span is in the set of drained, at rest. Clear although it is there: costs a look.
  typename A::template atomic<std::uint32_t> is_drained;
};

}  // namespace freehold::alloc
