// SPDX-License-Identifier: MIT
// The arena's free spans, and what each CPU has of them: the chunks, the chunk of each kind where a CPU works, and the
// figures that it has not reported to the budget yet.
//
//   Invariant, at rest: budget's free spans + those of all shards + those that threads report later == free_dirty_bytes().
//
// Any thread, no lock. CPUs work apart only as far as expect_threads() lets them.
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>

#include "freehold/alloc/return/budget.hpp"
#include "freehold/alloc/return/purge_due.hpp"
#include "freehold/alloc/spans/arena_types.hpp"
#include "freehold/alloc/spans/chunk_pool.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config>
class FreeSpans {
 public:
  using Units = ArenaUnits<Config>;
  using Chunks = ChunkPool<A, Config::kChunkSpans, typename Config::ChunkOrders>;
  using BudgetType = Budget<A, Config>;

  // The data of one CPU.
  struct alignas(base::kCacheLine) Shard {
    typename Chunks::Cursor slots{Chunks::kNoChunk}, runs{Chunks::kNoChunk};
    typename BudgetType::Shard budget;
    [[nodiscard]] typename Chunks::Cursor& cursor(ChunkKind kind) noexcept {
      return kind == ChunkKind::kSlots ? slots : runs;
    }
  };

  constexpr FreeSpans(BudgetType& budget, DueNote<A>& due) noexcept : budget_(budget), due_(due) {}

  // CPUs work in chunks of their own, but never in more than twice as many as there were threads: one thread that wanders
  // over many CPUs stays with its chunks. At most kShards count. Externally serialised.
  void expect_threads(std::size_t n) noexcept {
    const std::size_t shards = n < 2 ? 1 : std::bit_ceil(2 * std::min(n, std::size_t{kShards}));
    if (shards - 1 > shard_mask_.load(std::memory_order_relaxed))
      shard_mask_.store(static_cast<unsigned>(std::min(shards, std::size_t{kShards}) - 1), std::memory_order_relaxed);
  }
  // The caller's CPU, as far as CPUs work apart. Relaxed: a hint.
  [[nodiscard]] unsigned shard_number() const noexcept {
    const unsigned mask = shard_mask_.load(std::memory_order_relaxed);
    return mask == 0 ? 0 : A::cpu_id() & mask;  // which is a system call on some machines
  }
  [[nodiscard]] Shard& shard() noexcept { return shards_[shard_number()]; }
  // The caller, as it looks for spans; its node counts only where CPUs work apart. Relaxed: a hint.
  [[nodiscard]] Searcher searcher() const noexcept {
    const unsigned mask = shard_mask_.load(std::memory_order_relaxed);
    if (mask == 0) return {};
    const unsigned cpu = A::cpu_id() & mask;
    return {cpu, node_label()};
  }
  [[nodiscard]] Shard& shard_of(Searcher by) noexcept { return shards_[by.cpu]; }
  [[nodiscard]] bool cpus_work_apart() const noexcept { return shard_mask_.load(std::memory_order_relaxed) != 0; }
  [[nodiscard]] constexpr Chunks& chunks() noexcept { return chunks_; }

  // Reports changes of free spans that may hold pages, and of spans in runs. Returns whether a look at the budget is worth
  // while.
  bool report(Shard& shard, std::int64_t dirty_spans, std::int64_t run_spans) noexcept {
    constexpr auto kBytes = static_cast<std::int64_t>(Units::kSpanBytes);
    return budget_.spans_changed(shard.budget, dirty_spans * kBytes, run_spans * kBytes);
  }
  bool report(std::int64_t dirty_spans, std::int64_t run_spans) noexcept { return report(shard(), dirty_spans, run_spans); }
  // Puts the caller's spans among the free ones; they may hold pages.
  void give_spans(SpanIndex first, unsigned n, std::uint64_t now, bool just_now = true) noexcept {
    chunks_.give(first, n, true, static_cast<std::uint32_t>(now), just_now);
    (void)report(n, 0);
    due_.note();
  }
  // The same for spans that were not touched since they were taken: clean ones are still clean.
  void give_untouched(const TakenSpans& t, unsigned n) noexcept {
    chunks_.give_untouched(t, n);
    (void)report(t.dirty, 0);
    due_.note();
  }
  // Brings the budget's figures up to date.
  void settle() noexcept {
    for (Shard& shard : shards_) budget_.settle(shard.budget);
  }
  // Returns the changes that CPUs have not reported yet.
  [[nodiscard]] std::int64_t unreported(typename BudgetType::Bytes BudgetType::Shard::* figure) const noexcept {
    std::int64_t sum = 0;
    for (const Shard& shard : shards_) sum += (shard.budget.*figure).load(std::memory_order_relaxed);
    return sum;
  }
  template <class F>
  void for_each_live_figure(F&& f) const noexcept {
    f(LiveFigure::kRunBytes, shards_[0].budget.runs, kShards, sizeof(Shard));
    f(LiveFigure::kFreeDirtyBytes, shards_[0].budget.dirty, kShards, sizeof(Shard));
  }
  // Free spans that may hold pages. Counts: one pass over the `chunks` chunks that there are.
  [[nodiscard]] std::uint64_t free_dirty_bytes(std::uint32_t chunks) const noexcept {
    std::uint64_t spans = 0;
    for (std::uint32_t c = 0; c < chunks; ++c) {
      const auto& chunk = chunks_.chunk(c);
      spans += static_cast<unsigned>(
          std::popcount(chunk.free.load(std::memory_order_relaxed) & chunk.dirty.load(std::memory_order_relaxed)));
    }
    return spans * Units::kSpanBytes;
  }

 private:
  static constexpr unsigned kShards = Config::kShards;
  static_assert(std::has_single_bit(kShards));

  // Searcher::node of the caller.
  [[nodiscard]] std::uint8_t node_label() const noexcept {
    const unsigned node = node_of_caller<Config>();
    if (node != 0 && !several_nodes_.load(std::memory_order_relaxed)) several_nodes_.store(true, std::memory_order_relaxed);
    return several_nodes_.load(std::memory_order_relaxed) ? static_cast<std::uint8_t>(node % 255 + 1) : 0;
  }

  Chunks chunks_;
  BudgetType& budget_;
  DueNote<A>& due_;
  typename A::template atomic<unsigned> shard_mask_{0};  // the shards in use, less one
  Shard shards_[kShards];
  mutable std::atomic<bool> several_nodes_{false};  // set once: the simulated machine does not count it
};

}  // namespace freehold::alloc
