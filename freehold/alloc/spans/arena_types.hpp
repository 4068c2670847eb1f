// SPDX-License-Identifier: MIT
// Types that the parts of the arena share: units, settings, counters, the range of spans, the memory orders of the hand-over
// of spans, and places; see arena.hpp.
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "freehold/alloc/spans/chunk_pool.hpp"
#include "freehold/alloc/spans/span.hpp"
#include "freehold/base/bits.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::alloc {

enum class HugePages : std::uint8_t { kOff, kAuto, kOn };

struct ArenaSettings {
  std::size_t capacity_bytes = 0;  // at most this much memory; a power of two
  unsigned stripes = 8;  // stripes of the word pools' trees: a power of two, about four a CPU, as stripes_for() has it
  [[nodiscard]] static constexpr unsigned stripes_for(unsigned cpus) noexcept {
    return std::clamp(std::bit_ceil(4 * cpus), 8U, 64U);
  }
  unsigned chunk_stripes = 1;  // stripes of the trees over chunks: one a group of CPUs, as chunk_stripes_for() has it
  [[nodiscard]] static constexpr unsigned chunk_stripes_for(unsigned cpus) noexcept {
    return std::min(std::bit_ceil((cpus + Searcher::kGroupCpus - 1) / Searcher::kGroupCpus), 64U);
  }
  std::uint64_t purge_delay_ms = 500;
  HugePages huge_pages = HugePages::kAuto;
  bool prefault = false;          // new chunks get their pages at once
  std::uint64_t limit_bytes = 0;  // bound of what is in use and kept; 0: none
};

template <class Config>
struct ArenaUnits {
  static constexpr unsigned kSpanShift = Config::kSpanShift;
  static constexpr std::size_t kSpanBytes = std::size_t{1} << kSpanShift;
  [[nodiscard]] static constexpr unsigned pages_per_span() noexcept { return kSpanBytes / Config::page_bytes(); }
  static constexpr unsigned kChunkSpans = Config::kChunkSpans;
  static constexpr std::size_t kChunkBytes = kSpanBytes * kChunkSpans;
  [[nodiscard]] static constexpr unsigned spans_of(std::uint32_t pages) noexcept {
    return (pages + pages_per_span() - 1) / pages_per_span();
  }
};

// A block above the largest class, as in the table of runs: its pages, spans that have room for them, and its colour, the
// bytes before the block. Loops over several blocks that all began at a span would meet in a few sets of the first-level
// cache (slab colouring: Bonwick 1994). While a run has no place, its colour has the bits that may be set in it.
template <class Config>
class Run {
 public:
  using Units = ArenaUnits<Config>;
  static constexpr std::size_t kWayBytes = 4096;  // of most first-level caches: as far apart, lines meet in one set
  // Blocks from here on leave the arena page by page where they grow, by two system calls; smaller ones are copied.
  static constexpr std::size_t kMoveBytes = 256 * 1024;

  constexpr Run() noexcept = default;
  constexpr Run(std::uint32_t pages) noexcept : Run(pages, Units::spans_of(pages)) {}
  constexpr Run(std::uint32_t pages, unsigned spans, std::size_t colour = 0) noexcept
      : word_(spans << 24 | pages << 12 | static_cast<std::uint32_t>(colour)) {}
  // The run of a block that may begin at any line. It has a page more for that where this is at most a sixteenth of it.
  [[nodiscard, gnu::always_inline]] static Run coloured(std::size_t bytes) noexcept {
    const std::size_t page = Config::page_bytes();
    const auto pages = static_cast<std::uint32_t>(base::ceil_div(bytes, page));
    if (bytes >= kMoveBytes) return pages;
    if (bytes >= 16 * page && pages % Units::pages_per_span() != 0) return Run(pages + 1, Units::spans_of(pages), kColours);
    const std::size_t slack = std::min((0 - bytes) & (page - 1), kWayBytes - 1);
    return Run(pages, Units::spans_of(pages), (std::bit_floor(slack + base::kCacheLine) - 1) & kColours);
  }

  [[nodiscard]] unsigned spans() const noexcept { return word_ >> 24; }
  [[nodiscard]] std::uint32_t pages() const noexcept { return word_ >> 12 & 0xfff; }
  [[nodiscard]] std::size_t colour() const noexcept { return word_ & kColours; }
  // Those that the block may use.
  [[nodiscard]] std::size_t bytes() const noexcept { return pages() * Config::page_bytes() - colour(); }
  // The run at a place, whose number tells the colour. One that has a colour keeps it.
  [[nodiscard]] Run at(std::uint32_t span) const noexcept {
    Run placed;
    placed.word_ = word_ & (span * base::kGoldenRatio >> 20 | ~kColours);
    return placed;
  }

 private:
  static constexpr std::uint32_t kColours = kWayBytes - base::kCacheLine;
  static_assert(Units::kChunkBytes / kWayBytes <= 0xfff);

  std::uint32_t word_ = 0;
};

// The spans that exist, side by side from base() on. Their number only grows. Any thread.
template <sync::Atomics A, class Config>
class SpanRange {
 public:
  constexpr SpanRange() noexcept = default;
  void start_at(std::uintptr_t base) noexcept { base_ = base; }  // not thread-safe
  // Relaxed, here and below: published with the spans; a block's user was told its address after the range grew.
  void grow_to(std::size_t count) noexcept { count_.store(count, std::memory_order_relaxed); }
  [[nodiscard]] std::uintptr_t base() const noexcept { return base_; }
  [[nodiscard]] std::uintptr_t address(SpanIndex i) const noexcept {
    return base_ + (std::uintptr_t{i} << Config::kSpanShift);
  }
  // An address beyond is not ours.
  [[nodiscard]] std::size_t count() const noexcept { return count_.load(std::memory_order_relaxed); }
  [[nodiscard]] const auto& counter() const noexcept { return count_; }

 private:
  std::uintptr_t base_ = 0;
  typename A::template atomic<std::size_t> count_{0};
};

// Counts of the arena since its start.
template <sync::Atomics A>
struct ArenaCounters {
  typename A::template atomic<std::uint64_t> purged_bytes{0}, purge_calls{0}, span_claims{0}, span_returns{0};
};

// The ids of threads tell these: hints, in their last bits. Relaxed, all of it: publishes nothing.
template <sync::Atomics A>
class ThreadIds {
 public:
  static constexpr unsigned kMostNodes = 4;  // further ones share
  // A set of the threads that have ended. One that shares its bits with a later thread counts as living once that has begun.
  void note_begin(std::uint32_t id) noexcept {
    if (has_ended(id)) word_of(id).fetch_and(~base::bit(id % 64), std::memory_order_relaxed);
  }
  void note_end(std::uint32_t id) noexcept { word_of(id).fetch_or(base::bit(id % 64), std::memory_order_relaxed); }
  [[nodiscard]] bool has_ended(std::uint32_t id) const noexcept {
    return (words_[id / 64 % kWords].load(std::memory_order_relaxed) >> id % 64 & 1) != 0;
  }
  // id & node_mask() is the thread's memory node; 0: all threads looked for memory on one node. A thread that did so before
  // any thread of another node may have an id that says otherwise.
  [[nodiscard]] unsigned node_mask() const noexcept { return node_mask_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool is_of_node(std::uint32_t id, unsigned node) const noexcept {
    return node % kMostNodes <= node_mask() && ((id ^ node) & node_mask()) == 0;
  }
  // The id of the caches of a CPU on `node`, beside those of threads, which are smaller than `first`.
  [[nodiscard]] std::uint32_t of_cpu(std::uint32_t first, unsigned cpu, unsigned node) const noexcept {
    return first + cpu * (node_mask() + 1) + (node & node_mask());
  }
  // The id of a thread that begins on `node`, after `last`. The caller serialises.
  [[nodiscard]] std::uint32_t next(std::uint32_t last, std::uint32_t end, unsigned node) noexcept {
    node %= kMostNodes;
    if (node > node_mask()) node_mask_.store(std::bit_ceil(node + 1) - 1, std::memory_order_relaxed);
    do {
      last = last % (end - 1) + 1;
    } while ((last & node_mask()) != node);
    return last;
  }

 private:
  static constexpr unsigned kWords = 16;
  [[nodiscard]] auto& word_of(std::uint32_t id) noexcept { return words_[id / 64 % kWords]; }
  typename A::template atomic<std::uint64_t> words_[kWords]{};
  // Read by every search, and written as often as there are nodes: the simulated machine does not count it.
  alignas(base::kCacheLine) std::atomic<unsigned> node_mask_{0};
};

// The memory node of the calling thread's CPU. The models leave it out.
template <class Config>
[[nodiscard]] unsigned node_of_caller() noexcept {
  if constexpr (requires { Config::node(); })
    return Config::node();
  else
    return 0;
}

// How much a step of giving memory back may still do.
struct Effort {
  unsigned calls;
  std::size_t bytes;
  std::size_t reclaimed = 0;  // bytes of spans that became free ones, which the next step can give back
  [[nodiscard]] bool left() const noexcept { return calls != 0 && bytes != 0; }
  void spend(std::size_t n) noexcept {
    calls -= calls != 0 ? 1 : 0;
    bytes -= std::min(bytes, n);
  }
};

// The memory orders of the hand-over of spans between classes, so that the model tests can weaken each.
struct ArenaOrders {
  // seq_cst: release for threads that take the span's slots, and ordered against note_full()'s look into the set of empties
  // (store buffering with reclaim_empty_span(), which leaves the set first and then asks for the class).
  static constexpr auto kSetClass = std::memory_order_seq_cst;
  static constexpr auto kAskClass = std::memory_order_seq_cst;
};

// A run of spans.
struct RunPlace {
  SpanIndex first = kNoSpan;
  bool zero = false;  // its pages read as zero
};

// A slot, run or direct block.
struct BlockPlace {
  void* start = nullptr;  // null: none
  std::size_t bytes = 0;
  bool in_use = false;
};

// The slots [from, end) of a span of `slots` that lie on its pages [page, end_page), in part at least.
struct SlotRange {
  std::uint32_t from, end;
};
template <class Config>
[[nodiscard]] constexpr SlotRange slots_on_pages(std::uint32_t slots, std::size_t slot_bytes, std::size_t page,
                                                 std::size_t end_page) noexcept {
  return {static_cast<std::uint32_t>(page * Config::page_bytes() / slot_bytes),
          std::min(slots, static_cast<std::uint32_t>(base::ceil_div(end_page * Config::page_bytes(), slot_bytes)))};
}

}  // namespace freehold::alloc
