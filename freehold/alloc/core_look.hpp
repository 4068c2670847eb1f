// SPDX-License-Identifier: MIT
// Which block an address lies in, and all blocks: for checked mode and reports, not for paths that must be quick. See
// core.hpp. A slot that a cache holds is in use here. The purger may take the bits of free slots for a moment.
#pragma once
#include <algorithm>

#include "freehold/alloc/core.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
bool Core<A, Config, Pages, Clock>::is_in_use(SizeClass c, SpanIndex i, std::uint32_t number) noexcept {
  const auto& word = arena_.words_of(c)[pool::word_index(i, number / 64)];
  return (word.load(std::memory_order_relaxed) >> number % 64 & 1) == 0 && number < arena_.pool(c).shape().slots;
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
BlockPlace Core<A, Config, Pages, Clock>::block_around(const void* pointer) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (!in_arena(address)) return direct_.around(pointer);
  const auto i = static_cast<SpanIndex>((address - arena_.base()) >> ArenaType::kSpanShift);
  const SizeClass c = arena_.class_of_span(i);
  if (!c.is_slot()) {
    const SpanIndex first = arena_.runs().run_around(i);
    if (first == kNoSpan) return direct_.around(pointer);  // the system may have put one between the arena's chunks
    return {reinterpret_cast<void*>(arena_.address(first)), std::size_t{arena_.runs().run_pages(first)} * Config::kPageBytes,
            true};
  }
  const std::uint32_t number = arena_.geometry(c).index(static_cast<std::uint32_t>(address - arena_.address(i)));
  if (number >= arena_.pool(c).shape().slots) return {};
  const std::size_t bytes = Classes::slot_bytes(c);
  return {reinterpret_cast<void*>(arena_.address(i) + number * bytes), bytes, is_in_use(c, i, number)};
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
template <class F>
void Core<A, Config, Pages, Clock>::for_each_block(F&& f) noexcept {
  arena_.for_each_span([&](SpanIndex i, SizeClass c) {
    if (const std::uint32_t pages = arena_.runs().run_pages(i); pages != 0)
      f(BlockPlace{reinterpret_cast<void*>(arena_.address(i)), std::size_t{pages} * Config::kPageBytes, true});
    if (!c.is_slot()) return;
    const std::size_t bytes = Classes::slot_bytes(c);
    for (std::uint32_t number = 0; number < arena_.pool(c).shape().slots; ++number)
      if (is_in_use(c, i, number)) f(BlockPlace{reinterpret_cast<void*>(arena_.address(i) + number * bytes), bytes, true});
  });
  direct_.for_each(f);
}

// ---- what caches hold -----------------------------------------------------------------------------------------------

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
std::size_t Core<A, Config, Pages, Clock>::most_cached_slots() noexcept {
  const sync::Guard guard(registry_);
  std::size_t slots = 0;
  for (const Cache* cache = caches_; cache != nullptr; cache = cache->next)
    for (const SizeClass c : AllClasses<Classes>{}) slots += cache->bins[c].capacity;
  return slots;
}

// All caches at once, so that a slot that two of them hold is seen. What a cache's owner wrote is read as it is: if the
// thread ran meanwhile, what was read is forgotten.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
template <class StampOf>
__attribute__((no_sanitize("thread"))) void Core<A, Config, Pages, Clock>::report_misuse_in_caches(
    const Cache* mine, void** room, std::size_t most, StampOf&& stamp_of) noexcept {
  std::size_t n = 0;
  const sync::Guard guard(registry_);
  for (const Cache* cache = caches_; cache != nullptr; cache = cache->next) {
    const std::int32_t thread = cache->thread.load(std::memory_order_relaxed);
    const std::uint64_t stamp = cache == mine ? 1 : stamp_of(thread);
    if (stamp == 0 || !Gate::is_quiet(cache->inside)) continue;  // amid a slow call a slot may be free and in the array
    const std::size_t before = n;
    for (const SizeClass c : AllClasses<Classes>{}) {
      // Each read once: an owner that runs meanwhile moves its array, and the two need not fit together.
      void** const array = __atomic_load_n(&cache->bins[c].array, __ATOMIC_RELAXED);
      void** const top = __atomic_load_n(&cache->top.items[c.index()], __ATOMIC_RELAXED);
      if (array == nullptr || top <= array) continue;
      const auto entries = static_cast<std::size_t>(top - array) - 1;
      if (entries > Config::kBurstSlots || entries > most - n) continue;
      for (std::size_t i = 0; i < entries; ++i)
        if (void* const slot = array[1 + i]; slot != nullptr) room[n++] = slot;
    }
    if (cache != mine && stamp_of(thread) != stamp) n = before;
  }
  std::sort(room, room + n);
  for (std::size_t i = 0; i < n; ++i) {
    const BlockPlace place = block_around(room[i]);
    if (place.start != room[i])
      base::fatal(base::HeapError::kInteriorPointer, room[i]);
    else if (!place.in_use || (i != 0 && room[i - 1] == room[i]))
      base::fatal(base::HeapError::kDoubleFree, room[i]);
  }
}

}  // namespace freehold::alloc
