// SPDX-License-Identifier: MIT
// Counts over all spans: what statistics need, and the checks of the arena's invariants; see arena.hpp.
#pragma once
#include <bit>

#include "freehold/alloc/arena.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages>
std::uint64_t Arena<A, Config, Pages>::free_dirty_bytes() const noexcept {
  std::uint64_t spans = 0;
  for (std::uint32_t c = 0; c < span_count() / kChunkSpans; ++c) {
    const auto& chunk = chunks_.chunk(c);
    spans += static_cast<unsigned>(
        std::popcount(chunk.free.load(std::memory_order_relaxed) & chunk.dirty.load(std::memory_order_relaxed)));
  }
  return spans << kSpanShift;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
template <class IsKept>
bool Arena<A, Config, Pages>::check_invariants(IsKept kept) noexcept {
  if (!chunks_.check_invariants(static_cast<std::uint32_t>(span_count() / kChunkSpans))) return false;
  bool good = true;
  SpanIndex run_end = 0;
  for_each_span([&](SpanIndex i, SizeClass c) {
    if (const auto [pages, spans] = run(i); pages != 0) {
      good = good && !c.is_slot() && i >= run_end && spans_of(pages) <= spans;
      run_end = i + spans;
    }
    const int places = (chunks_.is_free(i) ? 1 : 0) + (c.is_slot() || i < run_end ? 1 : 0) + (kept(i) ? 1 : 0);
    good = good && places == (is_open(i) ? 1 : 0);  // at rest nothing is on its way between two
    good = good && (span_hints_[i].is_drained.load(std::memory_order_relaxed) == 0 || drained_.check_path(i));
    if (!c.is_slot()) return;
    good = good && pools_[c].check_span(i) && (!pools_[c].looks_full(i) || empties_.check_path(i));
  });
  return good;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::check_accounts(const Unreported& unreported) noexcept {
  std::int64_t live = 0, class_spans = 0, returned = 0, run_spans = 0;
  for_each_span([&](SpanIndex i, SizeClass c) {
    run_spans += this->run_spans(i);
    returned += std::popcount(spans_[i].page_hints.load(std::memory_order_relaxed) & PageHints::kReturned);
    if (!c.is_slot()) return;
    ++class_spans;
    live += static_cast<std::int64_t>((pools_[c].shape().slots - pools_[c].free_slots(i)) * Classes::slot_bytes(c));
  });
  auto told = budget_.figures();
  for (const Shard& shard : shards_) {
    told.dirty += shard.budget.dirty.load(std::memory_order_relaxed);
    told.runs += shard.budget.runs.load(std::memory_order_relaxed);
  }
  constexpr auto kBytes = static_cast<std::int64_t>(kSpanBytes);
  told.dirty += unreported.dirty_spans * kBytes;
  told.runs += unreported.run_spans * kBytes;
  return told.live + unreported.slot_bytes == live && told.class_spans == class_spans * kBytes &&
         told.returned == returned * static_cast<std::int64_t>(Config::kPageBytes) && told.runs == run_spans * kBytes &&
         told.dirty == static_cast<std::int64_t>(free_dirty_bytes()) + unreported.kept_dirty_spans * kBytes;
}

}  // namespace freehold::alloc
