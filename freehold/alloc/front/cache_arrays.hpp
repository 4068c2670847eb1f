// SPDX-License-Identifier: MIT
// The arrays of threads' caches: how they grow, and how many bytes of slots they may hold. A bin begins small and doubles
// while it is used, beyond kMaxSlots only if it is refilled between drains: so two threads that exchange blocks keep what
// they get. A cache may hold kThreadBytes, and more from a common budget, so that idle threads hold little.
//
//   Invariants: sum of capacity * slot_bytes over a cache's bins == granted <= allowance <= kThreadMaxBytes;
//               sum of (allowance - kThreadBytes) over all caches + left() == common().
//
// The cache's owner calls. Arrays come and go under the registry's lock; the budget takes none.
#pragma once
#include <algorithm>
#include <cstring>

#include "freehold/alloc/front/cache_registry.hpp"
#include "freehold/alloc/front/thread_cache.hpp"
#include "freehold/base/keep_errno.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages>
class CacheArrays {
 public:
  using Classes = typename Config::Classes;
  using Cache = ThreadCache<A, Config>;
  using Registry = CacheRegistry<A, Config, Pages>;

  constexpr explicit CacheArrays(Registry& registry) noexcept : registry_(registry) {}

  // Not thread-safe. `bytes`: what caches may hold beyond kThreadBytes each.
  void init(std::size_t bytes) noexcept {
    common_ = bytes;
    left_.store(bytes, std::memory_order_relaxed);
  }
  // Not thread-safe: before the first cache. For observers that see allocations only where a bin is refilled.
  void keep_no_bursts() noexcept { keeps_bursts_ = false; }
  // Doubles the bin, or makes its first array. False: it stays as it is.
  [[nodiscard, gnu::noinline]] bool grow(Cache& cache, SizeClass c) noexcept {
    auto& bin = cache.bins[c];
    const unsigned old = bin.capacity;
    const unsigned most = old < max_slots(c) ? max_slots(c) : burst_slots(c);
    const unsigned capacity = old == 0 ? first_slots(c) : std::min(old * 2, most);
    const base::KeepErrno keep;
    if (capacity <= old || !grant(cache, (capacity - old) * Classes::slot_bytes(c))) return false;
    void** array;
    {
      const sync::Guard guard(registry_.lock());
      array = static_cast<void**>(registry_.metadata().allocate(bin_array_bytes(capacity)));
      if (array == nullptr) {
        release(cache, (capacity - old) * Classes::slot_bytes(c));
        return false;
      }
      const std::size_t n = cache.entries(c);
      if (bin.array != nullptr) {
        std::memcpy(array + 1, bin.array + 1, n * sizeof(void*));
        registry_.metadata().free(bin.array, bin_array_bytes(old));
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
  void shrink(Cache& cache, SizeClass c) noexcept {
    auto& bin = cache.bins[c];
    if (bin.array == nullptr) return;
    {
      const sync::Guard guard(registry_.lock());
      registry_.metadata().free(bin.array, bin_array_bytes(bin.capacity));
    }
    release(cache, bin.capacity * Classes::slot_bytes(c));
    bin.array = nullptr;
    bin.capacity = 0;
    bin.batch = 1;
    bin.is_grown = bin.can_burst = false;
    void** const nothing = reinterpret_cast<void**>(&cache + 1);
    cache.top[c] = cache.limit[c] = nothing + 1;
  }
  // The cache ends. Relaxed, all of it: the budget is a number, it publishes nothing.
  void take_back(const Cache& cache) noexcept {
    left_.fetch_add(cache.allowance - Config::kThreadBytes, std::memory_order_relaxed);
  }
  [[nodiscard]] std::size_t common() const noexcept { return common_; }
  [[nodiscard]] std::uint64_t left() const noexcept { return left_.load(std::memory_order_relaxed); }
  template <class F>
  void for_each_live_figure(F&& f) const noexcept {
    f(LiveFigure::kCacheRoomBytes, left_);
  }

 private:
  static constexpr unsigned max_slots(SizeClass c) noexcept {
    return static_cast<unsigned>(
        std::clamp<std::size_t>(Config::kBinBytes / Classes::slot_bytes(c), Config::kMinSlots, Config::kMaxSlots));
  }
  static constexpr unsigned burst_slots(SizeClass c) noexcept {
    return static_cast<unsigned>(
        std::clamp<std::size_t>(Config::kBurstBytes / Classes::slot_bytes(c), max_slots(c), Config::kBurstSlots));
  }
  static constexpr unsigned first_slots(SizeClass c) noexcept {
    const std::size_t n = Config::kFirstBytes / Classes::slot_bytes(c);
    return n > Config::kFirstSlots ? Config::kFirstSlots : (n < 1 ? 1 : static_cast<unsigned>(n));
  }
  // Lets the cache hold so many bytes more. False: it may not.
  [[nodiscard]] bool grant(Cache& cache, std::size_t bytes) noexcept {
    if (cache.granted + bytes > cache.allowance) {
      const std::size_t want = base::align_up(cache.granted + bytes - cache.allowance, Config::kBudgetStepBytes);
      if (cache.allowance + want > Config::kThreadMaxBytes) return false;
      std::uint64_t left = left_.load(std::memory_order_relaxed);
      do {
        if (left < want) return false;
      } while (!left_.compare_exchange_weak(left, left - want, std::memory_order_relaxed, std::memory_order_relaxed));
      cache.allowance += want;
    }
    cache.granted += bytes;
    return true;
  }
  void release(Cache& cache, std::size_t bytes) noexcept {
    cache.granted -= bytes;
    const std::size_t keep = std::max(cache.granted, Config::kThreadBytes);
    const std::size_t surplus = base::align_down(cache.allowance - keep, Config::kBudgetStepBytes);
    if (surplus == 0) return;
    cache.allowance -= surplus;
    left_.fetch_add(surplus, std::memory_order_relaxed);
  }

  Registry& registry_;
  std::size_t common_ = 0;
  bool keeps_bursts_ = true;
  alignas(base::kCacheLine) typename A::template atomic<std::uint64_t> left_{0};
};

}  // namespace freehold::alloc
