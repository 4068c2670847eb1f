// SPDX-License-Identifier: MIT
// Slots of a thread's cache go back to the pools, and the budget hears how many a thread took and gave. Refill (refill.hpp)
// and Drain (drain.hpp) count their calls here: every 64th looks for what is due, and for bins that stay idle.
//
//   Invariant: cache.unreported == bytes of slots that the cache took less those that it gave back since its last report;
//              between two calls it is less than 64 KiB either way.
//
// The cache's owner calls. Cost: give_back() one atomic for each word; reports and ticks are rare.
#pragma once
#include <algorithm>
#include <utility>

#include "freehold/alloc/front/cache_arrays.hpp"
#include "freehold/alloc/large/kept_runs.hpp"
#include "freehold/alloc/return/kept_memory.hpp"
#include "freehold/alloc/spans/arena.hpp"
#include "freehold/base/keep_errno.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
class SlotReturns {
 public:
  using Classes = typename Config::Classes;
  using Cache = ThreadCache<A, Config>;
  using ArenaType = Arena<A, Config, Pages>;
  using Kept = KeptRuns<A, Config, Pages, Clock>;
  static constexpr unsigned kSlowCallsPerTick = 64;

  constexpr SlotReturns(ArenaType& arena, CacheArrays<A, Config, Pages>& arrays, Kept& kept,
                        Relief<A, Config, Pages, Clock>& relief) noexcept
      : arena_(arena), arrays_(arrays), kept_(kept), relief_(relief) {}

  // Gives n <= kMaxBatch slots back. They are not in the bin any more.
  void give_back(Cache& cache, SizeClass c, void* const* slots, std::size_t n) noexcept {
    auto& bin = cache.bins[c];
    const std::uint32_t remote = arena_.slots().give_slots(c, slots, n, bin.cursor.word, cache.id);
    bin.may_keep = remote == 0 || Classes::slot_bytes(c) >= base::kCacheLine;
    // Relaxed: only this thread writes it.
    if (remote != 0)
      cache.remote_frees.store(cache.remote_frees.load(std::memory_order_relaxed) + remote, std::memory_order_relaxed);
    report(cache, -static_cast<std::int64_t>(n * Classes::slot_bytes(c)));
  }
  // Gives back all that the bin holds, the newest first.
  void empty_bin(Cache& cache, SizeClass c) noexcept {
    auto& bin = cache.bins[c];
    if (bin.array == nullptr) return;
    if (bin.marks != 0) [[unlikely]]
      cache.end_marks(c);
    void** const first = bin.array + 1;
    for (std::size_t n = cache.entries(c); n != 0; n = cache.entries(c)) {
      const std::size_t batch = std::min(n, pool::kMaxBatch);
      cache.top[c] -= batch;
      give_back(cache, c, first + (n - batch), batch);
    }
  }

  // Adds to what the cache took (positive) or gave back since its last report, and reports when it is worth while.
  [[gnu::always_inline]] void report(Cache& cache, std::int64_t bytes) noexcept {
    const std::int64_t unreported = cache.unreported += bytes;
    if (unreported >= kReportBytes || unreported <= -kReportBytes) [[unlikely]]
      report_now(cache);
  }
  [[gnu::noinline]] void report_now(Cache& cache) noexcept {
    const base::KeepErrno keep;
    if (arena_.report_slots(std::exchange(cache.unreported, 0))) relief_.relieve(kept_.own_runs(cache), 0);
  }

  // Every 64th call ticks, or every one while memory waits to be given back: a program that went quiet makes few.
  [[gnu::always_inline]] void count_slow_call(Cache& cache) noexcept {
    if (++cache.slow_calls % kSlowCallsPerTick == 0 || arena_.due().something()) [[unlikely]]
      tick(cache);
  }
  [[gnu::noinline]] void tick(Cache& cache) noexcept {
    const std::uint64_t now = Clock::now();
    if (cache.slow_calls % kSlowCallsPerTick != 0 && !relief_.is_tick_due(now)) return;
    const base::KeepErrno keep;
    kept_.give_idle_mapping(cache, now, arena_.purge().delay_ms());
    relief_.tick(now);
    if (cache.slow_calls % (kSlowCallsPerTick * kTicksPerIdleLook) == 0) look_for_idle_bins(cache);
  }

 private:
  static constexpr unsigned kTicksPerIdleLook = 16;
  static constexpr std::int64_t kReportBytes = 64 * 1024;

  // Bins that saw no slow call for a thousand of them give back what they hold; they begin small again.
  void look_for_idle_bins(Cache& cache) noexcept {
    for (const SizeClass c : AllClasses<Classes>{}) {
      auto& bin = cache.bins[c];
      if (!bin.active && bin.array != nullptr) {
        empty_bin(cache, c);
        arrays_.shrink(cache, c);
      }
      bin.active = false;
    }
    // Relaxed: hints.
    const RunsUse use = cache.runs_use.load(std::memory_order_relaxed);
    if (use == RunsUse::kActive) return cache.runs_use.store(RunsUse::kIdle, std::memory_order_relaxed);
    if (auto* const runs = kept_.own_runs(cache); runs != nullptr && use == RunsUse::kIdle) {
      cache.runs_use.store(RunsUse::kNone, std::memory_order_relaxed);
      (void)kept_.empty_runs(*runs);
    }
  }

  ArenaType& arena_;
  CacheArrays<A, Config, Pages>& arrays_;
  Kept& kept_;
  Relief<A, Config, Pages, Clock>& relief_;
};

}  // namespace freehold::alloc
