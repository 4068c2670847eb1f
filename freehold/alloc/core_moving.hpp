// SPDX-License-Identifier: MIT
// Whether a block is worth moving, for programs that defragment their own heap; see core.hpp and freehold/malloc.h.
//
// Two fingers, as in a compacting collector: of each class, free slots on the lowest pages are filled with blocks from
// higher pages. A block is worth moving if a quarter of one of its pages is free and there is a free slot on a lower page.
// That slot then lies in the thread's array, as the one that its next malloc of the class returns; slots above the finger,
// such as the one that the former block left, go back to the bitmap first.
#pragma once
#include <algorithm>
#include <bit>

#include "freehold/alloc/core.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
bool Core<A, Config, Pages, Clock>::is_worth_moving(Cache& cache, const void* block) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  if (!blocks_.in_arena(address)) return false;
  const auto i = static_cast<SpanIndex>((address - arena_.base()) >> ArenaType::kSpanShift);
  const SizeClass c = arena_.class_of_span(i);
  if (!c.is_slot() || Classes::slot_bytes(c) >= Config::kPageBytes || cache.bins[c].marks != 0) return false;
  const auto offset = address - arena_.address(i);
  const auto end = offset + Classes::slot_bytes(c) - 1;
  if (is_well_used(i, c, offset / Config::kPageBytes) && is_well_used(i, c, end / Config::kPageBytes)) return false;
  return find_slot_below(cache, c, page_at(block));
}

// True if more than three quarters of the slots on a page are in use.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
bool Core<A, Config, Pages, Clock>::is_well_used(SpanIndex i, SizeClass c, std::size_t page) noexcept {
  const auto [from, end] = slots_on_pages<Config>(arena_.pool(c).shape().slots, Classes::slot_bytes(c), page, page + 1);
  std::uint32_t free = 0;
  for (unsigned w = from / 64; w * 64 < end; ++w) {
    const std::uint64_t bits = arena_.words_of(c)[pool::word_index(i, w)].load(std::memory_order_relaxed);
    free += static_cast<std::uint32_t>(std::popcount(bits & pool::bits_of_word(w, from, end)));
  }
  return 4 * free < end - from;
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
bool Core<A, Config, Pages, Clock>::find_slot_below(Cache& cache, SizeClass c, std::size_t page) noexcept {
  constexpr std::uint32_t kCallsPerRound = 4096;
  constexpr std::size_t kSpanPages = ArenaType::kSpanBytes / Config::kPageBytes;
  auto& finger = fingers_[c];
  // Relaxed, here and below: hints. Blocks that were freed since the round began left slots below the finger.
  if (finger.calls.fetch_add(1, std::memory_order_relaxed) % kCallsPerRound == kCallsPerRound - 1)
    finger.page.store(0, std::memory_order_relaxed);
  std::size_t at = finger.page.load(std::memory_order_relaxed);
  auto& bin = cache.bins[c];
  if (at >= page || (bin.capacity == 0 && !arrays_.grow(cache, c))) return false;
  put_back_above(cache, c, at);
  if (cache.entries(c) != 0) return true;
  pool::Taken taken{};
  for (std::size_t end = 0; at < page && taken.bits == 0; at = end) {
    const auto i = static_cast<SpanIndex>(at / kSpanPages);
    end = std::min(page, (i + std::size_t{1}) * kSpanPages);
    if (arena_.class_of_span(i) == c)
      taken =
          arena_.slots().take_lowest(i, c, at - i * kSpanPages, end - i * kSpanPages, std::min<unsigned>(bin.capacity, 64));
  }
  if (taken.bits == 0) {
    finger.page.store(page, std::memory_order_relaxed);
    return false;
  }
  void** const first = bin.array + 1;
  const std::size_t n = pool::list_slots(arena_.geometry(c), taken, first);
  report_slots(cache, static_cast<std::int64_t>(n * Classes::slot_bytes(c)));
  cache.top[c] = first + n;
  if (bin.looks != 0) cache.limit[c] = first + n;
  bin.active = true;
  finger.page.store(page_at(first[n - 1]), std::memory_order_relaxed);
  return true;
}

// The slots that malloc would hand out next go back as long as they lie above a page.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::put_back_above(Cache& cache, SizeClass c, std::size_t page) noexcept {
  void** const first = cache.bins[c].array + 1;
  for (std::size_t n = cache.entries(c); n != 0 && page_at(first[n - 1]) > page; n = cache.entries(c)) {
    std::size_t batch = 1;
    while (batch < std::min(n, pool::kMaxBatch) && page_at(first[n - batch - 1]) > page) ++batch;
    cache.top[c] -= batch;
    give_back(cache, c, first + (n - batch), batch);
  }
}

}  // namespace freehold::alloc
