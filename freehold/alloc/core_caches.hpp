// SPDX-License-Identifier: MIT
// The life of a thread's cache: its record, the growth of its arrays within the caches' budget, and what empties it; see
// core.hpp.
#pragma once
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "freehold/alloc/core.hpp"

namespace freehold::alloc {

// ---- threads come and go --------------------------------------------------------------------------------------------

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
typename Core<A, Config, Pages, Clock>::Cache* Core<A, Config, Pages, Clock>::attach() noexcept {
  static_assert(sizeof(Cache) <= 8192);
  const sync::Guard guard(registry_);
  void* memory = metadata_.allocate(sizeof(Cache) + 2 * sizeof(void*));
  if (memory == nullptr) return nullptr;
  auto* cache = new (memory) Cache(reinterpret_cast<void**>(static_cast<Cache*>(memory) + 1));
  cache->allowance = Config::kThreadBytes;
  cache->id = std::exchange(left_ids_[arena_.free_spans().shard_number()], 0);
  if (cache->id == 0) {
    last_id_ = (last_id_ + 1) % kFirstCpuId;  // an id that comes round again costs a hint
    cache->id = last_id_ + (last_id_ == 0 ? 1 : 0);
  }
  cache->slow.store(slow_calls_, std::memory_order_relaxed);
  const sync::Change change(cache_changes_);
  cache->next = caches_;
  if (caches_ != nullptr) caches_->previous = cache;
  caches_ = cache;
  threads_.store(threads() + 1, std::memory_order_relaxed);
  peak_threads_ = std::max(peak_threads_, threads());
  arena_.free_spans().expect_threads(peak_threads_);
  arena_.slots().ended_threads().note_begin(cache->id);
  return cache;
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::detach(Cache* cache) noexcept {
  // To stay: a fork's child must leave alone a cache that is half taken apart, and the record is given back below.
  cache->inside.store(1, std::memory_order_relaxed);
  end_runs(*cache);
  for (const SizeClass c : AllClasses<Classes>{}) {
    empty_bin(*cache, c);
    shrink(*cache, c);
    arena_.pool(c).clear_active(cache->bins[c].cursor, cache->id);
  }
  report_now(*cache);
  // Relaxed: the budget is a number, it publishes nothing.
  budget_.fetch_add(cache->allowance - Config::kThreadBytes, std::memory_order_relaxed);
  const sync::Guard guard(registry_);
  const sync::Change change(cache_changes_);
  past_remote_frees_ += cache->remote_frees.load(std::memory_order_relaxed);
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
  arena_.slots().ended_threads().note_end(cache->id);
  left_ids_[arena_.free_spans().shard_number()] = cache->id;
  metadata_.free(cache, sizeof(Cache) + 2 * sizeof(void*));
}

// In a fork's child: other threads' caches have no owner any more. What they hold is free memory, unless the owner was
// inside; then it is left alone, at most the cache's allowance.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::adopt_orphans(Cache* mine) noexcept {
  for (Cache* cache = caches_; cache != nullptr;) {
    Cache* const next = cache->next;
    if (cache != mine && Gate::is_quiet(cache->inside)) detach(cache);
    cache = next;
  }
}

// ---- the arrays -----------------------------------------------------------------------------------------------------

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
bool Core<A, Config, Pages, Clock>::grant(Cache& cache, std::size_t bytes) noexcept {
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

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::release_grant(Cache& cache, std::size_t bytes) noexcept {
  cache.granted -= bytes;
  const std::size_t keep = std::max(cache.granted, Config::kThreadBytes);
  const std::size_t surplus = base::align_down(cache.allowance - keep, Config::kBudgetStepBytes);
  if (surplus == 0) return;
  cache.allowance -= surplus;
  budget_.fetch_add(surplus, std::memory_order_relaxed);
}

// Doubles the bin, or makes its first array. False: it stays as it is.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
bool Core<A, Config, Pages, Clock>::grow(Cache& cache, SizeClass c) noexcept {
  auto& bin = cache.bins[c];
  const unsigned old = bin.capacity;
  const unsigned most = old < max_slots(c) ? max_slots(c) : burst_slots(c);
  const unsigned capacity = old == 0 ? first_slots(c) : std::min(old * 2, most);
  const base::KeepErrno keep;
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
  bin.batch = static_cast<std::uint8_t>(std::clamp(capacity / 2, 1U, 64U));
  bin.is_grown = capacity >= max_slots(c);
  bin.can_burst = keeps_bursts_ && capacity < burst_slots(c);
  if (old == 0) bin.looks = Cache::kLooks;
  cache.limit[c] = bin.looks != 0 ? cache.top[c] : array + 1 + capacity;
  return true;
}

// Takes an empty bin's array away.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::shrink(Cache& cache, SizeClass c) noexcept {
  auto& bin = cache.bins[c];
  if (bin.array == nullptr) return;
  {
    const sync::Guard guard(registry_);
    metadata_.free(bin.array, bin_array_bytes(bin.capacity));
  }
  release_grant(cache, bin.capacity * Classes::slot_bytes(c));
  bin.array = nullptr;
  bin.capacity = 0;
  bin.batch = 1;
  bin.is_grown = bin.can_burst = false;
  void** const nothing = reinterpret_cast<void**>(&cache + 1);
  cache.top[c] = cache.limit[c] = nothing + 1;
}

// ---- what caches hold goes back -------------------------------------------------------------------------------------

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::empty_bin(Cache& cache, SizeClass c) noexcept {
  auto& bin = cache.bins[c];
  if (bin.array == nullptr) return;
  if (bin.marks != 0) [[unlikely]] {  // they end
    cache.top[c] = std::remove(bin.array + 1, cache.top[c], nullptr);
    cache.mark_weights.drop_oldest(c.index(), bin.capacity);
    bin.marks = 0;
  }
  void** const first = bin.array + 1;
  for (std::size_t n = cache.entries(c); n != 0; n = cache.entries(c)) {
    const std::size_t batch = std::min(n, pool::kMaxBatch);
    cache.top[c] -= batch;
    give_back(cache, c, first + (n - batch), batch);
  }
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::flush(Cache& cache) noexcept {
  for (const SizeClass c : AllClasses<Classes>{}) empty_bin(cache, c);
  if (Runs* const runs = own_runs(cache); runs != nullptr) empty_runs(*runs);
}

// Bins that saw no slow call for a thousand of them give back what they hold; they begin small again.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::look_for_idle_bins(Cache& cache) noexcept {
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

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
Due Core<A, Config, Pages, Clock>::purge_idle() noexcept {
  const std::uint64_t now = Clock::now();
  const std::uint64_t delay = arena_.purge().delay_ms();
  direct_.try_drop_one_kept(now > delay ? now - delay : 0);
  Due due = arena_.purge().purge_idle(now);
  if (registry_.try_lock()) {
    if (reclaim_runs(nullptr, true) && due == Due::kNothing) due = Due::kLater;
    registry_.unlock();
  } else if (due == Due::kNothing) {
    due = Due::kLater;
  }
  return due == Due::kNothing && direct_.keeps_some() ? Due::kLater : due;
}

}  // namespace freehold::alloc
