// SPDX-License-Identifier: MIT
// Blocks above the largest size class: runs of spans, which a thread takes from the free spans that it keeps (run_cache.hpp)
// or from the arena, and direct blocks with a mapping each; see core.hpp.
#pragma once
#include <algorithm>
#include <utility>

#include "freehold/alloc/core.hpp"
#include "freehold/base/keep_errno.hpp"

namespace freehold::alloc {

// ---- threads' caches of runs -------------------------------------------------------------------------------------------

// Null: there is none, or another thread is in it. Pre: the caller is the cache's owner, and inside by the cache's mark.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
typename Core<A, Config, Pages, Clock>::Runs* Core<A, Config, Pages, Clock>::own_runs(Cache& cache) noexcept {
  // After our mark was set: either we see that it is closed, or the thread that closed it sees the mark.
  return cache.runs_closed.load(Config::RunOrders::kAskClosed) == 0 ? cache.runs : nullptr;
}

// The first use of a run by this thread.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::make_runs(Cache& cache) noexcept {
  const sync::Guard guard(registry_);
  void* const memory = metadata_.allocate(sizeof(Runs));
  if (memory != nullptr) cache.runs = new (memory) Runs;
}

// Null: it must not keep a word more.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
typename Core<A, Config, Pages, Clock>::Reserved* Core<A, Config, Pages, Clock>::word_to_reserve(Runs& runs) noexcept {
  std::int64_t left = run_budget_.load(std::memory_order_relaxed);  // relaxed: a number, it publishes nothing
  if (runs.count() < Runs::kWords)
    while (left > 0)
      if (run_budget_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed, std::memory_order_relaxed))
        return &runs.add();
  if (runs.count() == 0) return nullptr;
  Reserved& least = runs.least();
  unreserve(least, Clock::now());
  return &least;
}

// A run came from the arena: the thread keeps the other free spans of its chunk.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::reserve_around(Cache& cache, SpanIndex first) noexcept {
  if (!arena_.runs().is_worth_reserving(first)) return;
  if (cache.runs == nullptr) make_runs(cache);
  Runs* const runs = own_runs(cache);
  if (runs == nullptr) return;
  Reserved* to = runs->find(first / ArenaType::kChunkSpans);
  if (to == nullptr) to = word_to_reserve(*runs);
  if (to == nullptr) return;
  to->set_chunk(first / ArenaType::kChunkSpans);
  (void)arena_.runs().reserve(*to);
  note_runs_used(cache);
}

// From the spans that the thread keeps: those that still have their pages, then those that others have freed in its chunks
// or that were of classes, then any.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
RunPlace Core<A, Config, Pages, Clock>::allocate_reserved(Cache& cache, Run run, unsigned alignment) noexcept {
  Runs* const runs = own_runs(cache);
  if (runs == nullptr) return {};
  for (Reserved& r : *runs)
    if (const SpanIndex first = arena_.runs().allocate_dirty(*runs, r, run, alignment); first != kNoSpan)
      return {first, false};
  unsigned tries = 0;
  do {
    for (Reserved& r : *runs)
      if (arena_.runs().reserve(r))
        if (const SpanIndex first = arena_.runs().allocate_dirty(*runs, r, run, alignment); first != kNoSpan)
          return {first, false};
  } while (tries++ == 0 && arena_.source().reclaim_for_runs());
  RunPlace place;
  const std::uint64_t now = Clock::now();
  for (Reserved* r = runs->begin(); place.first == kNoSpan && r != runs->end(); ++r)
    place = arena_.runs().allocate_reserved(*runs, *r, run, alignment, now);
  if (runs->run_spans > kReportSpans) (void)arena_.runs().report(*runs);
  return place;
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
inline void* Core<A, Config, Pages, Clock>::allocate_kept(Cache& cache, std::size_t bytes) noexcept {
  Runs* const runs = own_runs(cache);
  if (runs == nullptr) return nullptr;
  const Run run = static_cast<std::uint32_t>(base::ceil_div(bytes, Config::kPageBytes));
  for (Reserved& r : *runs)
    if (const SpanIndex first = arena_.runs().allocate_dirty(*runs, r, run, 1); first != kNoSpan)
      return reinterpret_cast<void*>(arena_.address(first));
  return nullptr;
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
inline bool Core<A, Config, Pages, Clock>::free_kept(Cache& cache, void* block) noexcept {
  Runs* const runs = own_runs(cache);
  const SpanIndex first = run_at(reinterpret_cast<std::uintptr_t>(block));
  if (runs == nullptr || first == kNoSpan) return false;
  Reserved* const to = runs->find(first / ArenaType::kChunkSpans);
  if (to == nullptr) return false;
  arena_.runs().free_reserved(*runs, *to, first, arena_.runs().run_spans(first));
  note_runs_used(cache);
  // The clock is not for each of them.
  ++cache.slow_calls;
  if (runs->run_spans < -kReportSpans || cache.slow_calls % kRunsPerTick == 0) [[unlikely]]
    after_free_kept(cache, *runs);
  return true;
}

// What is due now and then.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::after_free_kept(Cache& cache, Runs& runs) noexcept {
  const bool many = runs.run_spans < -kReportSpans || runs.run_spans > kReportSpans;
  if (cache.slow_calls % kSlowCallsPerTick != 0 && !many && !arena_.due().something()) return;
  const base::KeepErrno keep;
  if (many && arena_.runs().report(runs)) relieve(&runs, static_cast<std::size_t>(kReportSpans) << ArenaType::kSpanShift);
  if (cache.slow_calls % kRunsPerTick == 0) tick_slow(cache);
}

// False: not possible where it is; the run is untouched.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
bool Core<A, Config, Pages, Clock>::resize_run(Cache* cache, SpanIndex first, std::uint32_t pages) noexcept {
  if (cache != nullptr) {
    Runs* const runs = own_runs(*cache);
    Reserved* const kept = runs != nullptr ? runs->find(first / ArenaType::kChunkSpans) : nullptr;
    if (kept != nullptr) {
      if (arena_.runs().resize_reserved(*runs, *kept, first, pages, Clock::now())) return true;
      unreserve(*kept, Clock::now());  // a part of what is behind it may be there, and a part not
    }
  }
  return arena_.runs().resize_run(first, pages, Clock::now());
}

// So that the purger looks: it finds either the note, or the use that came before it cleared the note.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::note_runs_used(Cache& cache) noexcept {
  if (cache.runs_use.load(std::memory_order_relaxed) == RunsUse::kActive) return;  // relaxed: only we set it
  cache.runs_use.store(RunsUse::kActive, Config::RunOrders::kNoteUse);
  arena_.due().note();
}

// The spans that the thread keeps (`own`, or null) go to the arena, and memory beyond the budget to the system. `freed`:
// bytes, now.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::relieve(Runs* own, std::size_t freed) noexcept {
  const std::uint64_t now = Clock::now();
  if (own != nullptr)
    for (Reserved& r : *own) unreserve(r, now);
  direct_.relieve(now);
  (void)arena_.purge().relieve(now, freed);
  reclaim_if_it_helps(now);
}

// If it is still too much, sleeping threads may keep it: at most one look for each delay.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::reclaim_if_it_helps(std::uint64_t now) noexcept {
  std::uint64_t next = next_reclaim_.load(std::memory_order_relaxed);  // relaxed: a time
  if (reserved_words() == 0 || gate_ == nullptr || now < next || arena_.budget().excess() <= 0) return;
  if (!next_reclaim_.compare_exchange_strong(next, now + std::max<std::uint64_t>(arena_.purge().delay_ms(), 10),
                                             std::memory_order_relaxed, std::memory_order_relaxed))
    return;
  if (!registry_.try_lock()) return;
  const bool some = reclaim_runs(nullptr, true);
  registry_.unlock();
  if (some) (void)arena_.purge().relieve(now);
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::unreserve(Reserved& r, std::uint64_t now) noexcept {
  if (const void* const twice = arena_.runs().unreserve(r, now); twice != nullptr) [[unlikely]]
    base::fatal(base::HeapError::kDoubleFree, twice);
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::empty_runs(Runs& runs) noexcept {
  const std::uint64_t now = Clock::now();
  for (Reserved& r : runs) unreserve(r, now);
  (void)arena_.runs().report(runs);
  run_budget_.fetch_add(runs.count(), std::memory_order_relaxed);
  runs.remove_all();
}

// The thread ends. Under the lock, since it need not be inside by the cache's mark.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::end_runs(Cache& cache) noexcept {
  if (cache.runs == nullptr) return;  // only its owner makes it
  const sync::Guard guard(registry_);
  cache.runs_use.store(RunsUse::kNone, std::memory_order_relaxed);  // relaxed: read under the lock, or as a hint
  empty_runs(*cache.runs);
  metadata_.free(std::exchange(cache.runs, nullptr), sizeof(Runs));
}

// Between closing a thread's runs and the look at its mark stands a fence on all CPUs, and between the owner's mark and its
// look at `runs_closed` a free one: of the two threads one sees the other. We wait for no thread: one that is inside keeps
// its runs.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
bool Core<A, Config, Pages, Clock>::reclaim_runs(const Cache* mine, bool only_idle) noexcept {
  using Orders = typename Config::RunOrders;
  bool some = false, closed = false;
  if (!may_reclaim_) return false;
  for (Cache* cache = caches_; cache != nullptr; cache = cache->next) {
    if (cache == mine || cache->runs == nullptr) continue;
    const RunsUse use = cache->runs_use.load(Orders::kLookForUse);
    if (use == RunsUse::kNone) continue;
    some = true;
    if (use == RunsUse::kActive) cache->runs_use.store(RunsUse::kIdle, std::memory_order_relaxed);  // relaxed: a hint
    if (use == RunsUse::kActive && only_idle) continue;
    cache->runs_closed.store(1, std::memory_order_relaxed);  // relaxed: the fence orders it
    closed = true;
  }
  if (!closed) return some;
  may_reclaim_ = gate_->fence_others();
  for (Cache* cache = caches_; cache != nullptr; cache = cache->next) {
    if (cache->runs_closed.load(std::memory_order_relaxed) == 0) continue;  // relaxed: only we write it
    if (may_reclaim_ && sync::ForkGate<A>::is_quiet(cache->inside)) {
      cache->runs_use.store(RunsUse::kNone, std::memory_order_relaxed);
      empty_runs(*cache->runs);
    }
    cache->runs_closed.store(0, Orders::kOpen);
  }
  return true;
}

// Memory is short. Returns whether some runs went to the arena.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
bool Core<A, Config, Pages, Clock>::give_cached_runs(Cache* mine) noexcept {
  bool some = false;
  if (mine != nullptr) {
    if (Runs* const runs = own_runs(*mine); runs != nullptr && runs->count() != 0) {
      empty_runs(*runs);
      some = true;
    }
  }
  const sync::Guard guard(registry_);
  return (gate_ != nullptr && reclaim_runs(mine, false)) || some;
}

// ---- large blocks -----------------------------------------------------------------------------------------------------

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
RunPlace Core<A, Config, Pages, Clock>::allocate_run(Cache* cache, Run run, unsigned alignment) noexcept {
  RunPlace place;
  if (cache != nullptr) {
    place = allocate_reserved(*cache, run, alignment);
    if (place.first != kNoSpan) return place;
    place = arena_.runs().allocate_run(run, alignment, Clock::now());
    if (place.first != kNoSpan) reserve_around(*cache, place.first);
  } else {
    place = arena_.runs().allocate_run(run, alignment, Clock::now());
  }
  if (place.first != kNoSpan || !give_cached_runs(cache)) return place;
  return arena_.runs().allocate_run(run, alignment, Clock::now());
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void* Core<A, Config, Pages, Clock>::allocate_large(Cache* cache, std::size_t bytes, std::size_t alignment, bool& zero,
                                                    std::size_t room) noexcept {
  if (bytes > PTRDIFF_MAX) return nullptr;
  const bool fits = bytes <= ArenaType::kChunkBytes && alignment <= ArenaType::kChunkBytes;
  const bool is_run = fits && (bytes <= Config::kMostRunBytes || alignment > Config::kPageBytes || direct_.has_most_small());
  if (is_run)
    if (void* const block = allocate_as_run(cache, bytes, alignment, zero, room); block != nullptr) return block;
  void* block = allocate_direct(cache, bytes, alignment, zero);
  if (block == nullptr && give_cached_runs(cache)) block = allocate_direct(cache, bytes, alignment, zero);
  // No address space is left for a mapping: the arena may have some that it used before.
  return block == nullptr && fits && !is_run ? allocate_as_run(cache, bytes, alignment, zero, 0) : block;
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void* Core<A, Config, Pages, Clock>::allocate_as_run(Cache* cache, std::size_t bytes, std::size_t alignment, bool& zero,
                                                     std::size_t room) noexcept {
  const auto pages = static_cast<std::uint32_t>(base::ceil_div(std::max<std::size_t>(bytes, 1), Config::kPageBytes));
  const auto align = static_cast<unsigned>(std::max<std::size_t>(alignment >> ArenaType::kSpanShift, 1));
  Run run = pages;
  // None for a block that leaves the arena when it grows; and a limit is for what the program asks for.
  if (room != 0 && bytes < kMoveBytes && arena_.purge().limit() == 0) {
    const std::size_t spans = base::ceil_div(bytes + room, ArenaType::kSpanBytes);
    run = Run(pages, static_cast<unsigned>(std::min<std::size_t>(spans, ArenaType::kChunkSpans)));
  }
  const RunPlace place = allocate_run(cache, run, align);
  if (place.first == kNoSpan) return room == 0 ? nullptr : allocate_as_run(cache, bytes, alignment, zero, 0);
  zero = place.zero;
  return reinterpret_cast<void*>(arena_.address(place.first));
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void* Core<A, Config, Pages, Clock>::allocate_direct(Cache* cache, std::size_t bytes, std::size_t alignment,
                                                     bool& zero) noexcept {
  const std::size_t want = base::align_up(std::max<std::size_t>(bytes, 1), Config::kPageBytes);  // bytes <= PTRDIFF_MAX
  const std::uint64_t now = Clock::now();
  if (arena_.purge().limit() == 0) return direct_.allocate(want, alignment, zero, now);
  const sync::Guard guard(admission_);
  return admit(cache, want) ? direct_.allocate(want, alignment, zero, now) : nullptr;
}

// Whether the limit allows for `bytes` more, if need be after all that is kept has gone back.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
bool Core<A, Config, Pages, Clock>::admit(Cache* cache, std::size_t bytes) noexcept {
  const std::uint64_t now = Clock::now();
  return arena_.purge().admit(bytes, now) ||
         (direct_.drop_kept(~std::uint64_t{0}) != 0 && arena_.purge().admit(bytes, now)) ||
         (give_cached_runs(cache) && arena_.purge().admit(bytes, now));
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::free_large(Cache* cache, void* block) noexcept {
  if (block == nullptr) return;
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const SpanIndex i = run_at(address);
  if (cache != nullptr && free_kept(*cache, block)) return;
  const std::uint64_t now = Clock::now();
  if (i == kNoSpan || !arena_.runs().free_run(i, now)) {
    if (!direct_.free(block, now)) return report(block);
    return tick(now);
  }
  direct_.relieve(now);
  tick(now);
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::report(const void* block) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  base::HeapError error = base::HeapError::kForeignPointer;
  if (in_arena(address)) {
    const auto i = static_cast<SpanIndex>((address - arena_.base()) >> ArenaType::kSpanShift);
    error = arena_.runs().run_around(i) != kNoSpan ? base::HeapError::kInteriorPointer : base::HeapError::kDoubleFree;
  }
  if (direct_.around(block).start != nullptr) error = base::HeapError::kInteriorPointer;
  base::fatal(error, block);
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
std::size_t Core<A, Config, Pages, Clock>::large_bytes(const void* block) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const SpanIndex i = run_at(address);
  return i == kNoSpan ? direct_.bytes_of(block) : std::size_t{arena_.runs().run_pages(i)} * Config::kPageBytes;
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void* Core<A, Config, Pages, Clock>::resize_large(Cache* cache, void* block, std::size_t bytes) noexcept {
  if (bytes <= Classes::kMaxBytes || bytes > PTRDIFF_MAX - Config::kPageBytes) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const std::size_t want = base::align_up(bytes, Config::kPageBytes);
  const SpanIndex i = run_at(address);
  if (i == kNoSpan) {
    const std::size_t old = direct_.bytes_of(block);
    if (want <= old || arena_.purge().limit() == 0) return direct_.resize(block, want);
    const sync::Guard guard(admission_);
    return admit(cache, want - old) ? direct_.resize(block, want) : nullptr;
  }
  const std::size_t old = std::size_t{arena_.runs().run_pages(i)} * Config::kPageBytes;
  if (bytes <= ArenaType::kChunkBytes && resize_run(cache, i, static_cast<std::uint32_t>(want / Config::kPageBytes)))
    return block;
  return old < kMoveBytes || want < old ? nullptr : move_out_of_arena(cache, block, old, want);
}

// A large block that outgrows its place goes to a mapping of its own, where it grows without being copied.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void* Core<A, Config, Pages, Clock>::move_out_of_arena(Cache* cache, void* block, std::size_t old_bytes,
                                                       std::size_t bytes) noexcept {
  const auto move = [&] {
    void* const moved = direct_.adopt(block, old_bytes, bytes, Clock::now());
    if (moved != nullptr) free_large(nullptr, block);
    return moved;
  };
  if (arena_.purge().limit() == 0) return move();
  const sync::Guard guard(admission_);
  return admit(cache, bytes) ? move() : nullptr;
}

}  // namespace freehold::alloc
