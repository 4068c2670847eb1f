// SPDX-License-Identifier: MIT
// When memory that threads and freed mappings keep goes back: after the delay, beyond the budget, and on request. The
// arena's free memory goes back by arena_purge.hpp, which is called from here.
//
//   Invariant: while a mapping is kept, or a thread keeps spans that were not looked at, something is due (arena_.due()).
//
// Any thread. Locks: the registry's, then those of direct blocks and of the arena. tick() and purge_idle() wait for none.
#pragma once
#include <algorithm>

#include "freehold/alloc/front/cache_registry.hpp"
#include "freehold/alloc/large/direct_blocks.hpp"
#include "freehold/alloc/large/kept_runs.hpp"
#include "freehold/alloc/spans/arena.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
class Relief {
 public:
  using ArenaType = Arena<A, Config, Pages>;
  using Kept = KeptRuns<A, Config, Pages, Clock>;
  using Cache = typename Kept::Cache;
  using Runs = typename Kept::Runs;
  using Reserved = typename Kept::Reserved;

  constexpr Relief(ArenaType& arena, DirectBlocks<A, Config, Pages>& direct, CacheRegistry<A, Config, Pages>& registry,
                   Kept& kept) noexcept
      : arena_(arena), direct_(direct), registry_(registry), kept_(kept) {}

  // --- after the delay -----------------------------------------------------------------------------------------------

  // True if the arena, or a mapping that is kept, may have something that is due.
  [[nodiscard]] bool is_tick_due(std::uint64_t now) const noexcept {
    return arena_.purge().is_tick_due(now) || direct_.keeps_some();
  }
  // Gives back memory that has been free for the delay, in a bounded step.
  void tick(std::uint64_t now) noexcept {
    const std::uint64_t delay = arena_.purge().delay_ms();
    if (direct_.keeps_some() && now > delay) (void)direct_.drop_kept(now - delay);
    // The purger, where there is one, takes back the spans that threads keep; the arena does not know of them.
    if (arena_.purge().tick(now) && kept_.reserved_words() != 0) arena_.due().note();
    if (direct_.keeps_some()) arena_.due().note();
  }
  // The same in a step that waits for no lock.
  [[nodiscard]] Due purge_idle() noexcept {
    const std::uint64_t now = Clock::now();
    const std::uint64_t delay = arena_.purge().delay_ms();
    direct_.try_drop_one_kept(now > delay ? now - delay : 0);
    Due due = arena_.purge().purge_idle(now);
    if (registry_.lock().try_lock()) {
      if (kept_.reclaim_runs(nullptr, true) && due == Due::kNothing) due = Due::kLater;
      registry_.lock().unlock();
    } else if (due == Due::kNothing) {
      due = Due::kLater;
    }
    return due == Due::kNothing && direct_.keeps_some() ? Due::kLater : due;
  }

  // --- beyond the budget ---------------------------------------------------------------------------------------------

  // The spans that the thread keeps (`own`, or null) go to the arena, and memory beyond the budget to the system. `freed`:
  // bytes, now.
  void relieve(Runs* own, std::size_t freed) noexcept {
    const std::uint64_t now = Clock::now();
    if (own != nullptr) {
      for (Reserved& r : *own) kept_.unreserve(r, now);
      (void)kept_.give_mapping(*own, now);
    }
    direct_.relieve(now);
    (void)arena_.purge().relieve(now, freed);
    reclaim_if_it_helps(now);
  }
  // Gives back memory beyond the budget, in a bounded step. Returns whether another would help.
  [[nodiscard]] bool relieve() noexcept {
    const std::uint64_t now = Clock::now();
    direct_.relieve(now);
    return arena_.purge().relieve(now) && arena_.budget().excess() > 0;
  }

  // --- on request ----------------------------------------------------------------------------------------------------

  // Gives all free pages back to the system; what caches hold stays. Returns bytes.
  std::size_t trim() noexcept {
    std::size_t bytes = 0;
    while (trim_step(bytes)) continue;
    return bytes;
  }
  // A bounded part of that; adds to `bytes`. Returns whether there is more.
  [[nodiscard]] bool trim_step(std::size_t& bytes) noexcept {
    bytes += direct_.drop_kept(~std::uint64_t{0});
    return arena_.purge().trim_step(Clock::now(), bytes);
  }
  // Gives the runs that other threads cache to the arena, except those of threads that are inside. `mine`: the caller's.
  void reclaim_all_runs(const Cache* mine) noexcept {
    const sync::Guard guard(registry_.lock());
    if (kept_.can_reclaim()) (void)kept_.reclaim_runs(mine, false);
  }

 private:
  // If it is still too much, sleeping threads may keep it: at most one look for each delay.
  void reclaim_if_it_helps(std::uint64_t now) noexcept {
    std::uint64_t next = next_reclaim_.load(std::memory_order_relaxed);  // relaxed: a time
    if (kept_.reserved_words() == 0 || !kept_.can_reclaim() || now < next || arena_.budget().excess() <= 0) return;
    if (!next_reclaim_.compare_exchange_strong(next, now + std::max<std::uint64_t>(arena_.purge().delay_ms(), 10),
                                               std::memory_order_relaxed, std::memory_order_relaxed))
      return;
    if (!registry_.lock().try_lock()) return;
    const bool some = kept_.reclaim_runs(nullptr, true);
    registry_.lock().unlock();
    if (some) (void)arena_.purge().relieve(now);
  }

  ArenaType& arena_;
  DirectBlocks<A, Config, Pages>& direct_;
  CacheRegistry<A, Config, Pages>& registry_;
  Kept& kept_;
  // Milliseconds; of memory that is too much.
  alignas(base::kCacheLine) typename A::template atomic<std::uint64_t> next_reclaim_{0};
};

}  // namespace freehold::alloc
