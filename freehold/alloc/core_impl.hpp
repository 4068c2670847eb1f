// The slow paths of Core; see core.hpp.
#pragma once
#include <algorithm>
#include <bit>
#include <utility>

#include "freehold/alloc/core.hpp"

namespace freehold::alloc {

#define FREEHOLD_CORE_TEMPLATE template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
#define FREEHOLD_CORE Core<A, Config, Pages, Clock>

// ---- caches -----------------------------------------------------------------------------------------------------------

FREEHOLD_CORE_TEMPLATE
typename FREEHOLD_CORE::Cache* FREEHOLD_CORE::attach() noexcept {
  static_assert(sizeof(Cache) <= 8192);
  const sync::Guard guard(registry_);
  void* memory = metadata_.allocate(sizeof(Cache) + 2 * sizeof(void*));
  if (memory == nullptr) return nullptr;
  auto* cache = new (memory) Cache(reinterpret_cast<void**>(static_cast<Cache*>(memory) + 1));
  cache->allowance = Config::kThreadBytes;
  last_id_ = (last_id_ + 1) % kFirstCpuId;  // an id that comes round again costs a hint
  cache->id = last_id_ + (last_id_ == 0 ? 1 : 0);
  cache->next = caches_;
  if (caches_ != nullptr) caches_->previous = cache;
  caches_ = cache;
  threads_.store(threads() + 1, std::memory_order_relaxed);
  threads_peak_ = std::max(threads_peak_, threads());
  arena_.expect_threads(threads_peak_);
  return cache;
}

FREEHOLD_CORE_TEMPLATE
void FREEHOLD_CORE::detach(Cache* cache) noexcept {
  // To stay: a fork's child must leave alone what is half taken apart, and the record is given back below.
  cache->in_slow_path.store(1, std::memory_order_relaxed);
  end_runs(*cache);
  for (const SizeClass c : AllClasses<Classes>{}) {
    empty_bin(*cache, c);
    shrink(*cache, c);
    arena_.pool(c).clear_active(cache->bins[c].cursor, cache->id);
  }
  report_slots(*cache, 0);
  // Relaxed: the budget is a number, it publishes nothing.
  budget_.fetch_add(cache->allowance - Config::kThreadBytes, std::memory_order_relaxed);
  const sync::Guard guard(registry_);
  for (const SizeClass c : AllClasses<Classes>{}) {
    past_refills_[c] += cache->bins[c].refills.load(std::memory_order_relaxed);
    past_drains_[c] += cache->bins[c].drains.load(std::memory_order_relaxed);
  }
  if (cache->previous != nullptr)
    cache->previous->next = cache->next;
  else
    caches_ = cache->next;
  if (cache->next != nullptr) cache->next->previous = cache->previous;
  threads_.store(threads() - 1, std::memory_order_relaxed);
  metadata_.free(cache, sizeof(Cache) + 2 * sizeof(void*));
}

FREEHOLD_CORE_TEMPLATE
bool FREEHOLD_CORE::grant(Cache& cache, std::size_t bytes) noexcept {
  if (cache.granted + bytes > cache.allowance) {
    const std::size_t want = base::align_up(cache.granted + bytes - cache.allowance, Config::kBudgetStepBytes);
    if (cache.allowance + want > Config::kThreadMaxBytes) return false;
    std::uint64_t left = budget_.load(std::memory_order_relaxed);
    do {
      if (left < want) return false;
    } while (!budget_.compare_exchange_weak(left, left - want, std::memory_order_relaxed, std::memory_order_relaxed));
    cache.allowance += want;
  }
  cache.granted += bytes;
  return true;
}

FREEHOLD_CORE_TEMPLATE
void FREEHOLD_CORE::release_grant(Cache& cache, std::size_t bytes) noexcept {
  cache.granted -= bytes;
  const std::size_t keep = std::max(cache.granted, Config::kThreadBytes);
  const std::size_t surplus = base::align_down(cache.allowance - keep, Config::kBudgetStepBytes);
  if (surplus == 0) return;
  cache.allowance -= surplus;
  budget_.fetch_add(surplus, std::memory_order_relaxed);
}

// Doubles the bin, or makes its first array. False: it stays as it is.
FREEHOLD_CORE_TEMPLATE
bool FREEHOLD_CORE::grow(Cache& cache, SizeClass c) noexcept {
  auto& bin = cache.bins[c];
  const unsigned old = bin.capacity;
  const unsigned capacity = old == 0 ? first_slots(c) : std::min(old * 2, max_slots(c));
  if (capacity <= old || !grant(cache, (capacity - old) * Classes::slot_bytes(c))) return false;
  void** array;
  {
    const sync::Guard guard(registry_);
    array = static_cast<void**>(metadata_.allocate(bin_array_bytes(capacity)));
    if (array == nullptr) {
      release_grant(cache, (capacity - old) * Classes::slot_bytes(c));
      return false;
    }
    const std::size_t n = cache.entries(c);
    if (bin.array != nullptr) {
      std::memcpy(array + 1, bin.array + 1, n * sizeof(void*));
      metadata_.free(bin.array, bin_array_bytes(old));
    }
    cache.top[c] = array + 1 + n;
  }
  array[0] = nullptr;
  bin.array = array;
  bin.capacity = static_cast<std::uint16_t>(capacity);
  cache.limit[c] = array + 1 + capacity;
  return true;
}

// Takes an empty bin's array away.
FREEHOLD_CORE_TEMPLATE
void FREEHOLD_CORE::shrink(Cache& cache, SizeClass c) noexcept {
  auto& bin = cache.bins[c];
  if (bin.array == nullptr) return;
  {
    const sync::Guard guard(registry_);
    metadata_.free(bin.array, bin_array_bytes(bin.capacity));
  }
  release_grant(cache, bin.capacity * Classes::slot_bytes(c));
  bin.array = nullptr;
  bin.capacity = 0;
  void** const nothing = reinterpret_cast<void**>(&cache + 1);
  cache.top[c] = cache.limit[c] = nothing + 1;
}

// Free slots where nobody else works; else a new span, unless that many threads work in this class already that sharing is
// no loss; else, when memory is short, free slots anywhere.
FREEHOLD_CORE_TEMPLATE
pool::Taken FREEHOLD_CORE::find_slots(pool::Cursor& cursor, SizeClass c, unsigned want, std::uint32_t thread_id,
                                      Cache* cache) noexcept {
  pool::Taken taken = arena_.take_slots(c, cursor, want, thread_id, max_foreign_spans_);
  if (taken.bits != 0) return taken;
  taken = arena_.claim(c, want, thread_id, Clock::now());
  // Kept mappings count under every limit, and so do runs that threads keep.
  if (taken.bits == 0 && direct_.drop_kept(~std::uint64_t{0}) != 0) taken = arena_.claim(c, want, thread_id, Clock::now());
  if (taken.bits == 0 && give_cached_runs(cache)) taken = arena_.claim(c, want, thread_id, Clock::now());
  if (taken.bits == 0) return arena_.take_slots(c, cursor, want, thread_id, 0);
  arena_.pool(c).settle(cursor, taken.word, thread_id);
  return taken;
}

// Adds to what the cache took (positive) or gave back since its last report, and reports when it is worth while; 0 reports
// what there is.
FREEHOLD_CORE_TEMPLATE
void FREEHOLD_CORE::report_slots(Cache& cache, std::int64_t bytes) noexcept {
  const std::int64_t unreported = cache.unreported += bytes;
  if (bytes != 0 && unreported < kReportBytes && unreported > -kReportBytes) return;
  const std::int64_t sum = std::exchange(cache.unreported, 0);
  if (arena_.report_slots(sum)) relieve(own_runs(cache), 0);
}

FREEHOLD_CORE_TEMPLATE
void* FREEHOLD_CORE::refill(Cache& cache, SizeClass c) noexcept {
  const SlowPath mark(cache);
  auto& bin = cache.bins[c];
  if (bin.capacity < max_slots(c)) (void)grow(cache, c);
  bin.active = true;
  const unsigned want = std::clamp(bin.capacity / 2U, 1U, 64U);
  pool::Taken taken = find_slots(bin.cursor, c, want, cache.id, &cache);
  if (taken.bits == 0) return nullptr;
  // Relaxed: only this thread writes it.
  bin.refills.store(bin.refills.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  count_slow_call(cache);
  const auto& geometry = arena_.geometry(c);
  const auto slot_bytes = static_cast<std::int64_t>(Classes::slot_bytes(c));
  report_slots(cache, std::popcount(taken.bits) * slot_bytes);
  if (bin.capacity <= 1) return reinterpret_cast<void*>(geometry.address(taken.word, base::lowest_bit(taken.bits)));
  void** top = bin.array + 1;
  top += pool::list_slots(geometry, taken, top);
  // A fragmented word yields little: a few more make the call worth while.
  for (unsigned tries = 0; tries < 7; ++tries) {
    const auto have = static_cast<unsigned>(top - (bin.array + 1));
    if (have * 2 >= want) break;
    // Again `want`, not what is missing: the rest of a word that was cut would be the next call's fragment, and so on.
    taken = arena_.take_slots(c, bin.cursor, want, cache.id, max_foreign_spans_);
    if (taken.bits == 0) break;
    report_slots(cache, std::popcount(taken.bits) * slot_bytes);
    top += pool::list_slots(geometry, taken, top);
  }
  cache.top[c] = top - 1;
  return top[-1];
}

FREEHOLD_CORE_TEMPLATE
void FREEHOLD_CORE::drain(Cache& cache, SizeClass c, void* slot) noexcept {
  const SlowPath mark(cache);
  auto& bin = cache.bins[c];
  bin.active = true;
  bin.drains.store(bin.drains.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  count_slow_call(cache);
  if (bin.capacity < max_slots(c) && grow(cache, c)) {
    (void)cache.push(c, slot);
    return;
  }
  if (bin.capacity == 0) return put_back(cache, c, &slot, 1);
  const std::size_t n = cache.entries(c);
  if (n == bin.capacity) {
    const std::size_t oldest = std::min<std::size_t>((n + 1) / 2, 64);
    put_back(cache, c, bin.array + 1, oldest);
    std::memmove(bin.array + 1, bin.array + 1 + oldest, (n - oldest) * sizeof(void*));
    cache.top[c] -= oldest;
  }
  (void)cache.push(c, slot);
}

FREEHOLD_CORE_TEMPLATE
void FREEHOLD_CORE::put_back(Cache& cache, SizeClass c, void* const* slots, std::size_t n) noexcept {
  arena_.give_slots(c, slots, n, cache.bins[c].cursor.word);
  report_slots(cache, -static_cast<std::int64_t>(n * Classes::slot_bytes(c)));
}

FREEHOLD_CORE_TEMPLATE
std::size_t FREEHOLD_CORE::take_batch(SizeClass c, void** slots, std::size_t n, unsigned cpu) noexcept {
  pool::Cursor cursor;
  const std::uint32_t thread_id = kFirstCpuId + cpu;
  const pool::Taken taken = find_slots(cursor, c, static_cast<unsigned>(n), thread_id, nullptr);
  arena_.pool(c).clear_active(cursor, thread_id);
  if (taken.bits == 0) return 0;
  (void)arena_.report_slots(std::popcount(taken.bits) * static_cast<std::int64_t>(Classes::slot_bytes(c)));
  return pool::list_slots(arena_.geometry(c), taken, slots);
}

FREEHOLD_CORE_TEMPLATE
void FREEHOLD_CORE::give_batch(SizeClass c, void* const* slots, std::size_t n) noexcept {
  pool::WordIndex last = 0;
  arena_.give_slots(c, slots, n, last);
  const std::uint64_t now = Clock::now();
  if (arena_.report_slots(-static_cast<std::int64_t>(n * Classes::slot_bytes(c)))) relieve(nullptr, 0);
  tick(now);
}

FREEHOLD_CORE_TEMPLATE
void* FREEHOLD_CORE::allocate_uncached(SizeClass c) noexcept {
  void* slot;
  return take_batch(c, &slot, 1, 0) == 1 ? slot : nullptr;
}

FREEHOLD_CORE_TEMPLATE
void FREEHOLD_CORE::free_uncached(SizeClass c, void* slot) noexcept {
  give_batch(c, &slot, 1);
  late_frees_.fetch_add(1, std::memory_order_relaxed);
}

FREEHOLD_CORE_TEMPLATE
void FREEHOLD_CORE::empty_bin(Cache& cache, SizeClass c) noexcept {
  auto& bin = cache.bins[c];
  if (bin.array == nullptr) return;
  void** const first = bin.array + 1;
  for (std::size_t n = cache.entries(c); n != 0; n = cache.entries(c)) {
    const std::size_t batch = std::min(n, pool::kMaxBatch);
    cache.top[c] -= batch;
    put_back(cache, c, first + (n - batch), batch);
  }
}

FREEHOLD_CORE_TEMPLATE
void FREEHOLD_CORE::flush(Cache& cache) noexcept {
  const SlowPath mark(cache);
  for (const SizeClass c : AllClasses<Classes>{}) empty_bin(cache, c);
  if (Runs* const runs = own_runs(cache); runs != nullptr) empty_runs(*runs);
}

FREEHOLD_CORE_TEMPLATE
void FREEHOLD_CORE::count_slow_call(Cache& cache) noexcept {
  // Every 64th call, or every one while memory waits to be given back: a program that went quiet makes few.
  if (++cache.slow_calls % kSlowCallsPerTick == 0 || arena_.something_due()) [[unlikely]]
    tick_slow(cache);
}

FREEHOLD_CORE_TEMPLATE
void FREEHOLD_CORE::tick_slow(Cache& cache) noexcept {
  tick(Clock::now());
  if (cache.slow_calls % (kSlowCallsPerTick * kTicksPerIdleLook) == 0) look_for_idle_bins(cache);
}

// Bins that saw no slow call for a thousand of them give back what they hold; they begin small again.
FREEHOLD_CORE_TEMPLATE
void FREEHOLD_CORE::look_for_idle_bins(Cache& cache) noexcept {
  for (const SizeClass c : AllClasses<Classes>{}) {
    auto& bin = cache.bins[c];
    if (!bin.active && bin.array != nullptr) {
      empty_bin(cache, c);
      shrink(cache, c);
    }
    bin.active = false;
  }
  // Relaxed: hints.
  const RunsUse use = cache.runs_use.load(std::memory_order_relaxed);
  if (use == RunsUse::kActive) return cache.runs_use.store(RunsUse::kIdle, std::memory_order_relaxed);
  if (Runs* const runs = own_runs(cache); runs != nullptr && use == RunsUse::kIdle) {
    cache.runs_use.store(RunsUse::kNone, std::memory_order_relaxed);
    empty_runs(*runs);
  }
}

// In a fork's child: other threads' caches have no owner any more. What they hold is free memory, unless the owner was in
// the middle of a refill or drain; then it is left alone, at most the cache's allowance.
FREEHOLD_CORE_TEMPLATE
void FREEHOLD_CORE::adopt_orphans(Cache* mine) noexcept {
  for (Cache* cache = caches_; cache != nullptr;) {
    Cache* const next = cache->next;
    if (cache != mine && cache->in_slow_path.load(std::memory_order_relaxed) == 0) detach(cache);
    cache = next;
  }
}

// ---- giving memory back -----------------------------------------------------------------------------------------------

FREEHOLD_CORE_TEMPLATE
Due FREEHOLD_CORE::purge_idle() noexcept {
  const std::uint64_t now = Clock::now();
  const std::uint64_t delay = arena_.purge_delay_ms();
  direct_.try_drop_one_kept(now > delay ? now - delay : 0);
  Due due = arena_.purge_idle(now);
  if (registry_.try_lock()) {
    if (reclaim_runs(nullptr, true) && due == Due::kNothing) due = Due::kLater;
    registry_.unlock();
  } else if (due == Due::kNothing) {
    due = Due::kLater;
  }
  return due == Due::kNothing && direct_.keeps_some() ? Due::kLater : due;
}

// ---- stats ------------------------------------------------------------------------------------------------------------

FREEHOLD_CORE_TEMPLATE
void FREEHOLD_CORE::stats(Stats& out) noexcept {
  std::memset(&out, 0, sizeof out);
  out.version = kStatsVersion;
  out.class_count = Classes::kCount - 1;
  const sync::Guard registry_guard(registry_);
  for (const SizeClass c : AllClasses<Classes>{}) {
    out.classes[c.index() - 1].slot_bytes = Classes::slot_bytes(c);
    out.classes[c.index() - 1].refills = past_refills_[c];
    out.classes[c.index() - 1].drains = past_drains_[c];
  }
  std::int64_t kept_spans = 0;
  for (const Cache* cache = caches_; cache != nullptr; cache = cache->next) {
    if (cache->runs != nullptr)
      cache->runs->for_each([&](auto, auto, std::uint64_t dirty) { kept_spans += std::popcount(dirty); });
    for (const SizeClass c : AllClasses<Classes>{}) {
      out.classes[c.index() - 1].refills += cache->bins[c].refills.load(std::memory_order_relaxed);
      out.classes[c.index() - 1].drains += cache->bins[c].drains.load(std::memory_order_relaxed);
    }
  }
  arena_.for_each_span([&](SpanIndex i, SizeClass c) {
    if (c.is_slot()) {
      auto& k = out.classes[c.index() - 1];
      ++k.spans;
      k.slots += arena_.pool(c).shape().slots;
      k.free_slots += arena_.pool(c).free_slots(i);
      out.small_span_bytes += ArenaType::kSpanBytes;
    } else {
      out.run_bytes += base::align_up(std::uint64_t{arena_.run_pages(i)} * Config::kPageBytes, ArenaType::kSpanBytes);
    }
  });
  // Relaxed: figures that need not fit together.
  const auto& counters = arena_.counters();
  out.reserved_bytes = arena_.committed_bytes() + arena_.metadata_bytes();
  out.committed_bytes = arena_.committed_bytes();
  out.free_dirty_bytes =
      arena_.free_dirty_bytes() + static_cast<std::uint64_t>(kept_spans) * ArenaType::kSpanBytes + direct_.kept_bytes();
  out.direct_bytes = direct_.live_bytes();
  // What is lent of the common budget, give or take a thread that is just borrowing.
  out.cached_limit_bytes = threads() * Config::kThreadBytes + common_budget_ - budget_.load(std::memory_order_relaxed);
  out.metadata_bytes = metadata_.mapped_bytes() + direct_.metadata_bytes() + arena_.metadata_bytes();
  out.purged_bytes = counters.purged_bytes.load(std::memory_order_relaxed);
  out.purge_calls = counters.purge_calls.load(std::memory_order_relaxed);
  out.span_claims = counters.span_claims.load(std::memory_order_relaxed);
  out.span_returns = counters.span_returns.load(std::memory_order_relaxed);
  out.lock_waits = arena_.lock_waits() + registry_.waits().count() + direct_.lock().waits().count();
  out.threads = threads();
  out.threads_peak = threads_peak_;
  out.late_frees = late_frees_.load(std::memory_order_relaxed);
}

// ---- invariants -------------------------------------------------------------------------------------------------------

// The invariant of thread_cache.hpp for one bin, and that its slots are of its class and not free in the bitmap as well.
FREEHOLD_CORE_TEMPLATE
bool FREEHOLD_CORE::check_bin(const Cache& cache, SizeClass c) noexcept {
  const auto& bin = cache.bins[c];
  if (bin.array == nullptr) return bin.capacity == 0 && cache.top[c] == cache.limit[c] && cache.top[c][-1] == nullptr;
  void** const first = bin.array + 1;
  if (bin.array[0] != nullptr || cache.limit[c] != first + bin.capacity) return false;
  if (cache.top[c] < first || cache.top[c] > cache.limit[c]) return false;
  pool::SlotGroups groups;
  for (void** slot = first; slot != cache.top[c]; ++slot) {
    const std::size_t span = (reinterpret_cast<std::uintptr_t>(*slot) - arena_.base()) >> ArenaType::kSpanShift;
    if (span >= arena_.span_count() || arena_.span_classes()[span].load(std::memory_order_relaxed) != c.index())
      return false;
    pool::group_slots(arena_.geometry(c), slot, 1, groups);
    if (groups.misplaced != 0) return false;
    const auto [index, bits] = groups.groups[0];
    if ((bits & ~arena_.pool(c).shape().full(pool::word_in_span(index))) != 0) return false;
    if ((arena_.word_address(index)->load(std::memory_order_relaxed) & bits) != 0) return false;
  }
  return true;
}

// Whether a thread keeps the free span; two at once are one too many.
FREEHOLD_CORE_TEMPLATE
bool FREEHOLD_CORE::is_kept(SpanIndex i) noexcept {
  unsigned keepers = 0;
  for (const Cache* cache = caches_; cache != nullptr; cache = cache->next)
    if (cache->runs != nullptr)
      cache->runs->for_each([&](std::uint32_t chunk, std::uint64_t free, auto) {
        keepers += chunk == i / ArenaType::kChunkSpans && (free >> i % ArenaType::kChunkSpans & 1) != 0 ? 1 : 0;
      });
  return keepers == 1;
}

FREEHOLD_CORE_TEMPLATE
bool FREEHOLD_CORE::check_invariants() noexcept {
  const sync::Guard registry_guard(registry_);
  std::uint64_t caches = 0;
  std::size_t lent = 0;
  for (const Cache* cache = caches_; cache != nullptr; cache = cache->next) {
    std::size_t granted = 0;
    for (const SizeClass c : AllClasses<Classes>{}) {
      if (!check_bin(*cache, c)) return false;
      granted += cache->bins[c].capacity * Classes::slot_bytes(c);
    }
    if (granted != cache->granted || granted > cache->allowance || cache->allowance < Config::kThreadBytes) return false;
    lent += cache->allowance - Config::kThreadBytes;
    ++caches;
  }
  return caches == threads() && lent + budget_.load(std::memory_order_relaxed) == common_budget_ &&
         direct_.check_invariants() && arena_.check_invariants([this](SpanIndex i) { return is_kept(i); });
}

FREEHOLD_CORE_TEMPLATE
bool FREEHOLD_CORE::check_accounts() noexcept {
  const sync::Guard registry_guard(registry_);
  typename ArenaType::Unreported unreported;
  for (const Cache* cache = caches_; cache != nullptr; cache = cache->next) {
    unreported.slot_bytes += cache->unreported;
    if (cache->runs == nullptr) continue;
    unreported.dirty_spans += cache->runs->dirty_spans;
    unreported.run_spans += cache->runs->run_spans;
    cache->runs->for_each([&](auto, auto, std::uint64_t dirty) { unreported.kept_dirty_spans += std::popcount(dirty); });
  }
  const auto told = arena_.budget().figures();
  return told.direct == static_cast<std::int64_t>(direct_.live_bytes()) &&
         told.kept == static_cast<std::int64_t>(direct_.kept_bytes()) && arena_.check_accounts(unreported);
}

#undef FREEHOLD_CORE
#undef FREEHOLD_CORE_TEMPLATE

}  // namespace freehold::alloc
