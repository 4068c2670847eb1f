// SPDX-License-Identifier: MIT
// The huge pages of the arena: which parts of chunks ask for one. A part is as long as a huge page, and `Chunk::huge` has a
// bit for each of a chunk's.
//
// Chunks of slots ask for them once the heap is not small, chunks of runs once it is large and looks at runs that were
// freed found them written: until then the system's default stands there. Where a part of one that was asked for goes back
// to the system, a huge page is forbidden, until all of it has gone back and is used again.
//
//   Invariant, at rest: wanted_ == the number of bits set in `huge` of all chunks.
//
// Any thread, no lock: two threads that change one part at once leave advice that is stale, at the cost of page faults.
#pragma once
#include <algorithm>
#include <bit>

#include "freehold/alloc/return/budget.hpp"
#include "freehold/alloc/spans/arena_types.hpp"
#include "freehold/alloc/spans/chunk_pool.hpp"
#include "freehold/os/pages.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages>
class HugeParts {
 public:
  using Units = ArenaUnits<Config>;
  using Chunks = ChunkPool<A, Config::kChunkSpans, typename Config::ChunkOrders>;
  static constexpr std::size_t kHugeBytes = std::min(std::size_t{2} << 20, Units::kChunkBytes);
  static constexpr unsigned kHugeSpans = kHugeBytes >> Config::kSpanShift;
  static constexpr unsigned kHugeParts = Config::kChunkSpans / kHugeSpans;
  static_assert(kHugeParts <= 8, "a bit each of Chunk::huge");

  constexpr HugeParts(const SpanRange<A, Config>& range, Chunks& chunks, const Budget<A, Config>& budget) noexcept
      : range_(range), chunks_(chunks), budget_(budget) {}

  // Not thread-safe.
  void init(Pages& pages, HugePages use) noexcept {
    pages_ = &pages;
    use_ = use;
  }
  [[nodiscard]] bool are_off() const noexcept { return use_ == HugePages::kOff; }
  // True if a huge page is asked for under span i.
  [[nodiscard]] bool is_huge(SpanIndex i) const noexcept {
    // relaxed: a hint.
    const unsigned parts = chunks_.chunk(i / Units::kChunkSpans).huge.load(std::memory_order_relaxed);
    return (parts >> i % Units::kChunkSpans / kHugeSpans & 1) != 0;
  }

  // Huge pages only once the heap is clearly not small: a small program pays for what it uses, also where the system's
  // default would be huge, and on however many CPUs it has a chunk (`chunks` of the kind before this one).
  void advise_spans(std::uint32_t chunk, unsigned from, unsigned end, ChunkKind kind, std::uint32_t chunks) noexcept {
    const auto advise = [&](unsigned behind, bool wanted) {
      if (from < behind)
        pages_->advise_huge(reinterpret_cast<void*>(range_.address(chunk * Units::kChunkSpans + from)),
                            (behind - from) * Units::kSpanBytes, wanted);
    };
    const bool off = are_off();
    const bool small = use_ == HugePages::kAuto &&
                       budget_.slots_in_use() < static_cast<std::int64_t>(Config::kHugeAfterBytes) * std::max(chunks, 1U);
    const bool for_runs = kind == ChunkKind::kRuns;
    if (for_runs && (off || !do_runs_fill_chunks(chunk))) {
      if (off || runs_forbidden_.load(std::memory_order_relaxed)) return advise(end, false);
      if (chunks == 0 && small) advise(std::min(end, kHugeSpans), false);
      return;
    }
    const bool wanted = for_runs || (!off && !small);
    advise(end, wanted);
    if (!wanted) return;
    unsigned parts = 0;
    for (unsigned part = 0; part < kHugeParts; ++part)
      if (from <= part * kHugeSpans && (part + 1) * kHugeSpans <= end) parts |= 1U << part;
    // relaxed: published with the spans.
    chunks_.chunk(chunk).huge.fetch_or(static_cast<std::uint8_t>(parts), std::memory_order_relaxed);
    wanted_.fetch_add(std::popcount(parts), std::memory_order_relaxed);
  }
  // The chunk asks for none any more.
  void forget(std::uint32_t chunk) noexcept {
    const auto parts = chunks_.chunk(chunk).huge.exchange(0, std::memory_order_relaxed);  // relaxed: hints
    wanted_.fetch_sub(std::popcount(parts), std::memory_order_relaxed);
  }
  // The caller took a clean span: if all of its huge page is clean and free, that is as good as new. The first of a chunk
  // that was new to a small program stays small.
  void ask_for_huge_page(const TakenSpans& t) noexcept {
    if (are_off()) return;
    const std::uint32_t c = t.first / Units::kChunkSpans;
    const unsigned part = t.first % Units::kChunkSpans / kHugeSpans;
    const auto& chunk = chunks_.chunk(c);
    // relaxed, all of it: hints.
    if (is_huge(t.first) || chunk.kind.load(std::memory_order_relaxed) != ChunkKind::kSlots) return;
    const std::uint64_t all = base::low_bits(kHugeSpans) << part * kHugeSpans;
    const std::uint64_t free = chunk.free.load(std::memory_order_relaxed) | Chunks::mask_of(t.first, 1);
    if ((free & all) != all || (chunk.dirty.load(std::memory_order_relaxed) & all) != 0) return;
    if (use_ == HugePages::kAuto && (budget_.slots_in_use() < static_cast<std::int64_t>(Config::kHugeAfterBytes) ||
                                     (t.purged_at == 0 && free == Chunks::kAll)))
      return;
    set_huge(c, part, true);
  }
  // The system's collector of huge pages would fill a part again that was given back. Under runs the system's default stands
  // until then; they lose it all at once, so that they stay one mapping.
  void split_huge_pages(std::uintptr_t at, std::size_t bytes) noexcept {
    if (use_ != HugePages::kAuto) return;
    const auto c = static_cast<std::uint32_t>((at - range_.base()) / Units::kChunkBytes);
    if (is_left_to_system(c)) {
      if (!runs_forbidden_.load(std::memory_order_relaxed)) {
        runs_forbidden_.store(true, std::memory_order_relaxed);
        forbid_huge_pages([this](std::uint32_t of) { return is_left_to_system(of); });
      }
      return;
    }
    if (chunks_.chunk(c).huge.load(std::memory_order_relaxed) == 0) return;
    const std::size_t from = (at - range_.base()) % Units::kChunkBytes;
    for (std::size_t part = from / kHugeBytes; part * kHugeBytes < from + bytes; ++part)
      if (from > part * kHugeBytes || from + bytes < (part + 1) * kHugeBytes)
        set_huge(c, static_cast<unsigned>(part), false);
  }
  // A page of a run was found written, or not. A program that always does one of the two lets this write nothing.
  void note_look(bool written) noexcept {
    const int before = looks_.load(std::memory_order_relaxed);  // relaxed, both: a hint
    const int after = std::clamp(before + (written ? 1 : -2), 0, kMostLooks);
    if (after != before) looks_.store(static_cast<std::uint8_t>(after), std::memory_order_relaxed);
  }
  // Beyond the budget, before it is worth a step. A huge page that is partly in use is not split for a little: where there
  // are some, another quarter of what is in use may wait, up to one huge page, until its neighbours are free as well.
  [[nodiscard]] std::int64_t patience() const noexcept {
    constexpr std::int64_t kShare = 4;
    if (are_off() || wanted_.load(std::memory_order_relaxed) == 0) return 0;
    return std::clamp(budget_.in_use() / kShare, std::int64_t{0}, static_cast<std::int64_t>(kHugeBytes));
  }

 private:
  static constexpr std::uint32_t kMostBorders = 1024;  // between parts with and without huge pages: each may be a mapping
  static constexpr int kMostLooks = 8, kEnoughLooks = 4;

  // True if huge pages under a new chunk of runs are as good as filled: looks found that programs write to all of their
  // runs, and what is in use is much beside the huge page that each CPU has begun.
  [[nodiscard]] bool do_runs_fill_chunks(std::uint32_t chunk) const noexcept {
    constexpr int kChunks = 16;
    constexpr std::int64_t kLeast = 16 * std::int64_t{kHugeBytes};  // for each CPU
    // relaxed, all of it: hints.
    if (looks_.load(std::memory_order_relaxed) < kEnoughLooks) return false;
    std::uint64_t cpus = 0;
    for (int chunks = 0; chunk-- > 0 && chunks < kChunks;) {
      const auto& before = chunks_.chunk(chunk);
      if (before.kind.load(std::memory_order_relaxed) != ChunkKind::kRuns) continue;
      ++chunks;
      cpus |= base::bit(before.user.load(std::memory_order_relaxed) % 64);
    }
    return budget_.in_use() >= std::popcount(cpus) * kLeast;
  }
  // True if the chunk is of runs, and asks for no huge page.
  [[nodiscard]] bool is_left_to_system(std::uint32_t c) const noexcept {
    const auto& chunk = chunks_.chunk(c);  // relaxed, both: hints
    return chunk.kind.load(std::memory_order_relaxed) == ChunkKind::kRuns && chunk.huge.load(std::memory_order_relaxed) == 0;
  }

  // Asks for a huge page under a part of a chunk, or forbids it. Where that made the arena many mappings, it becomes one
  // again.
  void set_huge(std::uint32_t chunk, unsigned part, bool wanted) noexcept {
    auto& huge = chunks_.chunk(chunk).huge;
    const auto bit = static_cast<std::uint8_t>(1U << part);
    const auto others = static_cast<std::uint8_t>(~bit);
    // relaxed: a hint, and which thread changed it.
    const std::uint8_t before =
        wanted ? huge.fetch_or(bit, std::memory_order_relaxed) : huge.fetch_and(others, std::memory_order_relaxed);
    if (((before & bit) != 0) == wanted) return;
    wanted_.fetch_add(wanted ? 1 : -1, std::memory_order_relaxed);
    pages_->advise_huge(reinterpret_cast<void*>(range_.address(chunk * Units::kChunkSpans + part * kHugeSpans)), kHugeBytes,
                        wanted);
    if (borders_.fetch_add(2, std::memory_order_relaxed) < kMostBorders) return;
    borders_.store(0, std::memory_order_relaxed);
    forbid_huge_pages([this](std::uint32_t of) {
      return chunks_.chunk(of).kind.load(std::memory_order_relaxed) != ChunkKind::kNone && !is_left_to_system(of);
    });
  }
  template <class Belongs>
  void forbid_huge_pages(Belongs belongs) noexcept {
    const auto count = static_cast<std::uint32_t>(range_.count() / Units::kChunkSpans);
    for (std::uint32_t c = 0, end; c < count; c = end + 1) {
      for (end = c; end < count && belongs(end); ++end) forget(end);
      if (end > c)
        pages_->advise_huge(reinterpret_cast<void*>(range_.address(c * Units::kChunkSpans)), (end - c) * Units::kChunkBytes,
                            false);
    }
  }

  const SpanRange<A, Config>& range_;
  Chunks& chunks_;
  const Budget<A, Config>& budget_;
  Pages* pages_ = nullptr;
  HugePages use_ = HugePages::kAuto;
  typename A::template atomic<bool> runs_forbidden_{false};  // to have huge pages
  typename A::template atomic<std::uint8_t> looks_{0};       // one up for each page of a run found written, two down if not
  typename A::template atomic<std::int32_t> wanted_{0};      // parts that huge pages are asked for under
  typename A::template atomic<std::uint32_t> borders_{0};    // at most, between parts with and without
};

}  // namespace freehold::alloc
