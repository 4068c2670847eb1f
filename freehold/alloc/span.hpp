// SPDX-License-Identifier: MIT
// The arena's record of one span of 64 KiB that belongs to a size class: the free bits of its slots. Found by index from the
// address. The span's class lies apart, in a dense table, since every free reads it; chunk_pool.hpp knows which spans are
// free.
#pragma once
#include <atomic>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/slots/word_pool.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::alloc {

using SpanIndex = std::uint32_t;
inline constexpr SpanIndex kNoSpan = ~SpanIndex{0};

// What a look at a span found, in bits that are dropped when slots of the span are handed out. All are hints: a stale one
// costs a system call or a missed purge.
struct PageHints {
  static constexpr unsigned kPages = 16;
  static constexpr std::uint64_t kReturned = 0xffff;                 // one bit a page: it was given back to the system
  static constexpr std::uint64_t kLooked = std::uint64_t{1} << 32;   // the span was seen by the last look for empty ones
  static constexpr std::uint64_t kDrained = std::uint64_t{1} << 33;  // the same by the last look for free pages
};

// Any thread.
template <sync::Atomics A, unsigned kWords>
struct alignas(base::kCacheLine) Span {
  typename A::template atomic<std::uint64_t> summary;
  typename A::template atomic<std::uint64_t> page_hints;
  // One bit a slot, set when free.
  alignas(base::kCacheLine) typename A::template atomic<std::uint64_t> words[kWords];
};
static_assert(sizeof(Span<sync::NativeAtomics, 64>) == 576);

}  // namespace freehold::alloc
