// SPDX-License-Identifier: MIT
// Runs: blocks of 1 to 64 spans in one chunk, from the chunks or from spans that a thread keeps (run_cache.hpp); see
// arena.hpp.
#pragma once
#include <algorithm>
#include <bit>
#include <utility>

#include "freehold/alloc/arena.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages>
RunPlace Arena<A, Config, Pages>::allocate_run(Run run, unsigned alignment, std::uint64_t now) noexcept {
  const TakenSpans t = take_spans(ChunkKind::kRuns, run.spans, alignment, false, now);
  if (t.first == kNoSpan) return {};
  set_run(t.first, run);
  account(0, run.spans, now);
  return {t.first, t.dirty == 0};
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::free_run(SpanIndex first, std::uint64_t now) noexcept {
  // Relaxed: an exchange, so that of two frees one sees the other; what the user wrote, the give publishes.
  const auto [pages, n] = std::bit_cast<Run>(run_pages_[first].exchange(0, std::memory_order_relaxed));
  if (pages == 0) return false;
  chunks_.give(first, n, true, static_cast<std::uint32_t>(now));
  note_due();
  account(n, -static_cast<std::int64_t>(n), now);
  return true;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::resize_run(SpanIndex first, std::uint32_t pages, std::uint64_t now) noexcept {
  const auto [old_pages, old] = run(first);
  const unsigned n = spans_of(pages);
  if (n > old) {
    if (first % kChunkSpans + n > kChunkSpans) return false;
    const TakenSpans t = chunks_.take_exactly(first + old, n - old);
    if (t.first == kNoSpan) return false;
    account(-static_cast<std::int64_t>(t.dirty), n - old, now);
    if (t.dirty < n - old && limit() != 0 && !admit(0, now)) {
      account(0, -static_cast<std::int64_t>(n - old), now);
      give_untouched(t, n - old);
      return false;
    }
  }
  // A run that grows keeps its room, and one that shrinks gives it back.
  set_run(first, {pages, pages < old_pages ? n : std::max<unsigned>(n, old)});
  if (n < old && pages < old_pages) {
    give_spans(first + n, old - n, now);
    account(0, -static_cast<std::int64_t>(old - n), now);
  }
  return true;
}

// ---- spans that threads keep ----------------------------------------------------------------------------------------

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::is_worth_reserving(SpanIndex i) const noexcept {
  // Relaxed, all of it: the kind of a chunk in use does not change, the others are hints.
  if (chunks_are_dear_.load(std::memory_order_relaxed) || limit() != 0) return false;
  if (run_spans(i) > kChunkSpans / 2) return false;
  const auto& chunk = chunks_.chunk(i / kChunkSpans);
  return chunk.kind.load(std::memory_order_relaxed) == ChunkKind::kRuns && chunk.free.load(std::memory_order_relaxed) != 0;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::reserve(Reserved& to) noexcept {
  const std::uint64_t more = chunks_.reserve(to.chunk());
  if (more != 0) to.add(more, chunks_.dirty_among(to.chunk(), more));
  return more != 0;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
const void* Arena<A, Config, Pages>::unreserve(Reserved& from, std::uint64_t now) noexcept {
  const std::uint64_t twice = chunks_.unreserve(from.chunk(), from.free(), from.dirty(), static_cast<std::uint32_t>(now));
  from.remove(~std::uint64_t{0});
  note_due();
  return twice == 0 ? nullptr : reinterpret_cast<const void*>(address(from.chunk() * kChunkSpans + base::lowest_bit(twice)));
}

template <sync::Atomics A, class Config, os::PageSource Pages>
inline SpanIndex Arena<A, Config, Pages>::allocate_dirty(Runs& runs, Reserved& from, Run run, unsigned alignment) noexcept {
  const unsigned place = Chunks::find_run(from.dirty(), run.spans, alignment);
  if (place == Chunks::kNoPlace) return kNoSpan;
  const SpanIndex first = from.chunk() * kChunkSpans + place;
  from.remove(Chunks::mask_of(first, run.spans));
  set_run(first, run);
  runs.dirty_spans -= run.spans;
  runs.run_spans += run.spans;
  return first;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
RunPlace Arena<A, Config, Pages>::allocate_reserved(Runs& runs, Reserved& from, Run run, unsigned alignment,
                                                    std::uint64_t now) noexcept {
  const unsigned place = Chunks::find_run(from.free(), run.spans, alignment);
  if (place == Chunks::kNoPlace) return {};
  const SpanIndex first = from.chunk() * kChunkSpans + place;
  const std::optional<bool> zero = use_reserved(runs, from, Chunks::mask_of(first, run.spans), run.spans, first, run, now);
  return zero ? RunPlace{first, *zero} : RunPlace{};
}

// `run` at `first`, whose `n` spans `mask` (the new ones of a run that grows) come out of what the caller keeps. Returns
// whether all of these read as zero; nothing: under a limit the arena asks for clean ones.
template <sync::Atomics A, class Config, os::PageSource Pages>
std::optional<bool> Arena<A, Config, Pages>::use_reserved(Runs& runs, Reserved& from, std::uint64_t mask, unsigned n,
                                                          SpanIndex first, Run run, std::uint64_t now) noexcept {
  const std::uint64_t with_pages = from.dirty() & mask;
  auto dirty = n;
  if (with_pages != mask) {
    dirty = static_cast<unsigned>(std::popcount(with_pages));
    if (limit() != 0) return {};
    const auto& chunk = chunks_.chunk(from.chunk());
    regret_fresh({first, dirty, chunk.purged_at.load(std::memory_order_relaxed)}, n, now);
  }
  from.remove(mask);
  set_run(first, run);
  runs.dirty_spans -= dirty;
  runs.run_spans += n;
  return dirty == 0;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
inline void Arena<A, Config, Pages>::free_reserved(Runs& runs, Reserved& to, SpanIndex first, unsigned n) noexcept {
  set_run(first, {});  // no exchange: it would wait for all that the program has just written
  to.add(Chunks::mask_of(first, n), ~std::uint64_t{0});
  runs.dirty_spans += n;
  runs.run_spans -= n;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::resize_reserved(Runs& runs, Reserved& kept, SpanIndex first, std::uint32_t pages,
                                              std::uint64_t now) noexcept {
  const auto [old_pages, old] = run(first);
  const unsigned n = spans_of(pages);
  if (n > old) {
    if (first % kChunkSpans + n > kChunkSpans) return false;
    const std::uint64_t mask = Chunks::mask_of(first + old, n - old);
    return (kept.free() & mask) == mask && use_reserved(runs, kept, mask, n - old, first, pages, now);
  }
  if (pages >= old_pages) {
    set_run(first, {pages, old});
    return true;
  }
  set_run(first, pages);
  if (n < old) free_reserved(runs, kept, first + n, old - n);
  return true;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::report(Runs& runs) noexcept {
  constexpr auto kBytes = static_cast<std::int64_t>(kSpanBytes);
  const std::int64_t dirty = std::exchange(runs.dirty_spans, 0), used = std::exchange(runs.run_spans, 0);
  return budget_.spans_changed(shards_[shard_number()].budget, dirty * kBytes, used * kBytes) && budget_.excess() > slack();
}

}  // namespace freehold::alloc
