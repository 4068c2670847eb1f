// SPDX-License-Identifier: MIT
// Whether a block is worth moving, for programs that defragment their own heap; see freehold/malloc.h.
//
// Two fingers, as in a compacting collector: of each class, free slots on the lowest pages are filled with blocks from
// higher pages. A block is worth moving if a quarter of one of its pages is free and there is a free slot on a lower page.
// That slot then lies in the thread's array, as the one that its next malloc of the class returns; slots above the finger,
// such as the one that the former block left, go back to the bitmap first.
//
//   Invariant: after true the newest entry of the cache's array of the class is a slot on a lower page.
//
// The cache's owner calls; the fingers are hints that all threads share.
#pragma once
#include <algorithm>
#include <bit>

#include "freehold/alloc/front/slot_returns.hpp"
#include "freehold/alloc/spans/block_map.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
class Moving {
 public:
  using Classes = typename Config::Classes;
  using Returns = SlotReturns<A, Config, Pages, Clock>;
  using Cache = typename Returns::Cache;
  using ArenaType = typename Returns::ArenaType;
  using Arrays = CacheArrays<A, Config, Pages>;
  using Blocks = BlockMap<A, Config, Pages>;

  constexpr Moving(ArenaType& arena, const Blocks& blocks, Arrays& arrays, Returns& returns) noexcept
      : arena_(arena), blocks_(blocks), arrays_(arrays), returns_(returns) {}

  // True if the pages of a block of the caller's would be less crowded without it while its thread's next malloc of the same
  // size gets a slot on a lower page.
  [[nodiscard]] bool is_worth(Cache& cache, const void* block) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    if (!blocks_.in_arena(address)) return false;
    const auto i = static_cast<SpanIndex>((address - arena_.base()) >> ArenaType::kSpanShift);
    const SizeClass c = arena_.slots().slot_class_of_span(i);
    if (!c.is_slot() || Classes::slot_bytes(c) >= Config::page_bytes() || cache.bins[c].marks != 0) return false;
    const auto offset = address - arena_.address(i);
    const auto end = offset + Classes::slot_bytes(c) - 1;
    if (is_well_used(i, c, offset / Config::page_bytes()) && is_well_used(i, c, end / Config::page_bytes())) return false;
    return find_slot_below(cache, c, block);
  }
  // The second half of that, for any class: true if there is a slot on a lower page than that of `block`.
  [[nodiscard]] bool find_slot_below(Cache& cache, SizeClass c, const void* block) noexcept {
    constexpr std::uint32_t kCallsPerRound = 4096;
    const std::size_t span_pages = ArenaType::Units::pages_per_span();
    const std::size_t page = page_at(block);
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
      const auto i = static_cast<SpanIndex>(at / span_pages);
      end = std::min(page, (i + std::size_t{1}) * span_pages);
      if (arena_.class_of_span(i) == c)
        taken = arena_.slots().take_lowest(i, c, at - i * span_pages, end - i * span_pages,
                                           std::min<unsigned>(bin.capacity, 64));
    }
    if (taken.bits == 0) {
      finger.page.store(page, std::memory_order_relaxed);
      return false;
    }
    void** const first = bin.array + 1;
    const std::size_t n = pool::list_slots(arena_.geometry(c), taken, first);
    returns_.report(cache, static_cast<std::int64_t>(n * Classes::slot_bytes(c)));
    cache.top[c] = first + n;
    if (bin.looks != 0) cache.limit[c] = first + n;
    bin.active = true;
    finger.page.store(page_at(first[n - 1]), std::memory_order_relaxed);
    return true;
  }

 private:
  // The page that is being filled, and how often was asked.
  struct Finger {
    typename A::template atomic<std::size_t> page{0};
    typename A::template atomic<std::uint32_t> calls{0};
  };

  // The number of the arena's page where `address` lies.
  [[nodiscard]] std::size_t page_at(const void* address) const noexcept {
    return (reinterpret_cast<std::uintptr_t>(address) - arena_.base()) / Config::page_bytes();
  }
  // True if more than three quarters of the slots on a page are in use.
  [[nodiscard]] bool is_well_used(SpanIndex i, SizeClass c, std::size_t page) noexcept {
    const auto [from, end] = slots_on_pages<Config>(arena_.pool(c).shape().slots, Classes::slot_bytes(c), page, page + 1);
    std::uint32_t free = 0;
    for (unsigned w = from / 64; w * 64 < end; ++w) {
      const std::uint64_t bits = arena_.words_of(c)[pool::word_index(i, w)].load(std::memory_order_relaxed);
      free += static_cast<std::uint32_t>(std::popcount(bits & pool::bits_of_word(w, from, end)));
    }
    return 4 * free < end - from;
  }
  // The slots that malloc would hand out next go back as long as they lie above a page.
  void put_back_above(Cache& cache, SizeClass c, std::size_t page) noexcept {
    void** const first = cache.bins[c].array + 1;
    for (std::size_t n = cache.entries(c); n != 0 && page_at(first[n - 1]) > page; n = cache.entries(c)) {
      std::size_t batch = 1;
      while (batch < std::min(n, pool::kMaxBatch) && page_at(first[n - batch - 1]) > page) ++batch;
      cache.top[c] -= batch;
      returns_.give_back(cache, c, first + (n - batch), batch);
    }
  }

  ArenaType& arena_;
  const Blocks& blocks_;
  Arrays& arrays_;
  Returns& returns_;
  PerClass<Finger, Classes::kCount> fingers_;
};

}  // namespace freehold::alloc
