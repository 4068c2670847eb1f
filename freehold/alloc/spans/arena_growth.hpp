// SPDX-License-Identifier: MIT
// How the arena grows: new chunks, and the tables for their spans; and how it shrinks where the process has to be smaller:
// wholly free chunks are unmapped, and are the first to come back for spans of their kind.
//
// Extents of chunks are set aside for a kind. A kind's first chunk is mapped in steps, the others at once. A foreign mapping
// where a chunk would lie stays there: the next chunk serves.
//
//   Invariants: a chunk below chunks_end_ belongs to one extent; of a kind's first chunk the spans [0, open) are mapped, of its
//               other chunks below `next` all, but those that are marked as unmapped. Tables are mapped for every span that exists.
//
// lock_ serialises all of it; threads that wait for it take what another thread's growth has left. Errors: no spans, and
// errno, when address space, memory or the page source is exhausted; nothing is lost then.
#pragma once
#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "freehold/alloc/return/arena_huge.hpp"
#include "freehold/alloc/spans/arena_space.hpp"
#include "freehold/alloc/spans/free_spans.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages>
class ArenaGrowth {
 public:
  using Units = ArenaUnits<Config>;
  using Spans = FreeSpans<A, Config>;
  using Chunks = typename Spans::Chunks;
  using Space = ArenaSpace<Config, Pages>;

  constexpr ArenaGrowth(SpanRange<A, Config>& range, Spans& spans, HugeParts<A, Config, Pages>& huge) noexcept
      : range_(range), spans_(spans), chunks_(spans.chunks()), huge_(huge) {}

  // Finds a place for the tables of space() and for the memory. False: the page source refused; may be tried again. Not
  // thread-safe.
  [[nodiscard]] bool init(Pages& pages, const ArenaSettings& settings) noexcept {
    pages_ = &pages;
    prefault_ = settings.prefault;
    if (!space_.init(pages, settings.capacity_bytes)) return false;
    max_chunks_ = static_cast<std::uint32_t>(settings.capacity_bytes / Units::kChunkBytes);
    // Under a small limit of addresses a chunk is a large part of what there is, thread stacks included: CPUs share them.
    const std::size_t limit = pages.address_limit();
    chunks_are_dear_.store(limit / Units::kChunkBytes < kManyChunks, std::memory_order_relaxed);
    if (limit != SIZE_MAX) scarce_spans_ = limit / Units::kSpanBytes / kScarceShare;
    return true;
  }
  [[nodiscard]] Space& space() noexcept { return space_; }

  // Spans as ChunkPool::take() finds them, of the chunks there are or of a new one.
  [[nodiscard]] TakenSpans take_or_grow(ChunkKind kind, unsigned n, unsigned alignment, Searcher by,
                                        std::uint64_t now) noexcept {
    constexpr unsigned kTries = 4;  // others may take the new chunk's spans before us
    const sync::Guard guard(lock_);
    for (unsigned i = 0; i < kTries; ++i) {
      // Another thread may have grown while we waited.
      const bool anywhere = chunks_are_dear();
      const TakenSpans t =
          chunks_.take(kind, n, alignment, by, spans_.shard_of(by).cursor(kind), anywhere, static_cast<std::uint32_t>(now));
      if (t.first != kNoSpan) return t;
      if (!grow(kind, n, by)) break;
    }
    return {};
  }
  // True if CPUs share chunks, because each is dear: locked memory, or few addresses. Relaxed: a hint.
  [[nodiscard]] bool chunks_are_dear() const noexcept { return chunks_are_dear_.load(std::memory_order_relaxed); }
  // True if the arena has taken so much of a limit of addresses that what a run leaves unused is missed. Without a limit no
  // line is read that others write.
  [[nodiscard]] bool are_addresses_scarce() const noexcept {
    return scarce_spans_ != SIZE_MAX && range_.count() >= scarce_spans_;
  }
  // True if the span is one that was mapped. Call at rest.
  [[nodiscard]] bool is_open(SpanIndex i) const noexcept {
    return chunks_.chunk(i / Units::kChunkSpans).unmapped == 0 &&
           std::none_of(std::begin(extents_), std::end(extents_), [i](const Extent& extent) {
             return i / Units::kChunkSpans == extent.first && i % Units::kChunkSpans >= extent.open;
           });
  }
  // True if the system would map `bytes`, were `unmapped` bytes of ours not there.
  [[nodiscard]] bool would_fit(std::size_t bytes, std::size_t unmapped) noexcept {
    if (bytes <= unmapped) return true;
    void* const rest = pages_->map(bytes - unmapped);
    return rest != nullptr && pages_->unmap(rest, bytes - unmapped);
  }
  // Unmaps wholly free chunks in favour of `bytes` that the caller maps, and no more of them. False: it would not help.
  [[nodiscard]] bool unmap_for(std::size_t bytes) noexcept {
    const sync::Guard guard(lock_);
    const auto chunks = static_cast<std::uint32_t>(range_.count() / Units::kChunkSpans);
    std::size_t free = 0, unmapped = 0;
    for (std::uint32_t c = 0; c < chunks; ++c)  // relaxed: a glance
      if (chunks_.chunk(c).free.load(std::memory_order_relaxed) == Chunks::kAll) free += Units::kChunkBytes;
    if (free == 0 || !would_fit(bytes, free)) return false;
    for (std::uint32_t c = chunks; c-- > 0 && unmapped < bytes;)
      if (unmap_chunk(c)) unmapped += Units::kChunkBytes;
    return unmapped != 0;
  }
  [[nodiscard]] std::uint64_t memory_bytes() noexcept {
    const sync::Guard guard(lock_);
    return space_.memory_bytes();
  }
  [[nodiscard]] std::uint64_t table_bytes() noexcept {
    const sync::Guard guard(lock_);
    return space_.table_bytes();
  }
  [[nodiscard]] auto& lock() noexcept { return lock_; }
  [[nodiscard]] const auto& lock() const noexcept { return lock_; }

 private:
  static constexpr std::uint32_t kLast = ~std::uint32_t{0};
  static constexpr std::size_t kManyChunks = 64;  // if the process may map fewer, each is dear
  static constexpr std::size_t kScarceShare = 8;
  // A kind's first chunk is mapped in steps: memory that no block has had is no access to a small program.
  static constexpr unsigned kFirstSpans = Units::kChunkSpans >= 64 ? Units::kChunkSpans / 16 : Units::kChunkSpans;

  // Chunks [next, end) are set aside for a kind, so that kinds do not alternate in the address space: under huge pages each
  // change is one mapping more.
  struct Extent {
    std::uint32_t next = 0, end = 0, chunks = 0;
    std::uint32_t first = Chunks::kNoChunk;  // the kind's first chunk, of which `open` spans are mapped
    unsigned open = 0, most = Units::kChunkSpans;
    std::uint32_t unmapped = kLast;  // plus one, of the chunks that were unmapped; `Chunk::unmapped` has the next of each
  };

  [[nodiscard]] bool unmap_chunk(std::uint32_t c) noexcept {
    const SpanIndex first = c * Units::kChunkSpans;
    const TakenSpans t = chunks_.take_exactly(first, Units::kChunkSpans);
    if (t.first == kNoSpan) return false;
    if (!space_.unmap_memory(first * Units::kSpanBytes, Units::kChunkBytes)) {
      chunks_.give_untouched(t, Units::kChunkSpans);
      return false;
    }
    (void)spans_.report(-static_cast<std::int64_t>(t.dirty), 0);
    huge_.forget(c);
    auto& chunk = chunks_.chunk(c);
    chunk.dirty.store(0, std::memory_order_relaxed);  // relaxed, both: the spans are ours
    chunk.unmapped =
        std::exchange(extents_[static_cast<unsigned>(chunk.kind.load(std::memory_order_relaxed))].unmapped, c + 1);
    return true;
  }
  // A chunk of the kind comes back. False: none was unmapped, or the system refuses.
  [[nodiscard]] bool map_again(ChunkKind kind, Searcher by) noexcept {
    for (std::uint32_t& next = extents_[static_cast<unsigned>(kind)].unmapped; next != kLast;) {
      const std::uint32_t c = next - 1;
      auto& chunk = chunks_.chunk(c);
      const bool mapped = map_spans(c, 0, Units::kChunkSpans, kind);
      if (!mapped && errno != EEXIST) return false;
      next = std::exchange(chunk.unmapped, mapped ? 0 : kLast);  // something else has come there, and stays
      if (!mapped) continue;
      chunk.user.store(by.as_user(), std::memory_order_relaxed);  // relaxed: a hint
      chunks_.give(c * Units::kChunkSpans, Units::kChunkSpans, false, 0);
      return true;
    }
    return false;
  }
  // The chunk that `kind` gets next; kNoChunk: the address space is used up. Extents grow with their kind; at the end of the
  // address space one kind takes what is set aside for the other.
  [[nodiscard]] std::uint32_t next_chunk(ChunkKind kind) noexcept {
    Extent& mine = extents_[static_cast<unsigned>(kind)];
    if (mine.next < mine.end) return mine.next;
    if (chunks_end_ < max_chunks_) {
      const std::uint32_t want = std::clamp(mine.chunks / 2, 1U, Config::kMaxExtentChunks);
      mine.next = chunks_end_;
      mine.end = chunks_end_ = std::min(max_chunks_, chunks_end_ + want);
      return mine.next;
    }
    Extent& theirs = extents_[static_cast<unsigned>(other_kind(kind))];
    if (theirs.next == theirs.end) return Chunks::kNoChunk;
    --theirs.end;
    mine.next = theirs.end;
    mine.end = mine.next + 1;
    return mine.next;
  }
  // Maps spans of a chunk. False: the system refuses, errno says why.
  [[nodiscard]] bool map_spans(std::uint32_t chunk, unsigned from, unsigned end, ChunkKind kind) noexcept {
    const SpanIndex first = chunk * Units::kChunkSpans + from;
    const std::size_t bytes = (end - from) * Units::kSpanBytes;
    if (!space_.map_memory(first * Units::kSpanBytes, bytes)) return false;
    void* const memory = reinterpret_cast<void*>(range_.address(first));
    // Under mlockall() a chunk costs all of its memory at once: CPUs share chunks then.
    if (pages_->is_locked(static_cast<char*>(memory) + bytes - Units::kSpanBytes))
      chunks_are_dear_.store(true, std::memory_order_relaxed);
    Extent& extent = extents_[static_cast<unsigned>(kind)];
    huge_.advise_spans(chunk, from, end, kind, chunk == extent.first ? 0 : extent.chunks);
    if (prefault_) pages_->populate(memory, bytes);
    return true;
  }
  // Maps more of the kind's first chunk: room for n spans at least. False: it is mapped, or cannot be.
  [[nodiscard]] bool open_more(ChunkKind kind, unsigned n) noexcept {
    Extent& extent = extents_[static_cast<unsigned>(kind)];
    if (extent.first == Chunks::kNoChunk || extent.open + n > extent.most) return false;
    const unsigned from = extent.open, end = std::min(std::bit_ceil(std::max(from * 4, from + n)), Units::kChunkSpans);
    if (!map_spans(extent.first, from, end, kind)) {
      if (errno == EEXIST) extent.most = from;  // something else has come there, and stays
      return false;
    }
    extent.open = end;
    chunks_.give(extent.first * Units::kChunkSpans + from, end - from, false, 0);
    return true;
  }
  // New memory for n spans, in a chunk that the CPU may work in.
  [[nodiscard]] bool grow(ChunkKind kind, unsigned n, Searcher by) noexcept {
    if (map_again(kind, by)) return true;
    Extent& extent = extents_[static_cast<unsigned>(kind)];
    const bool is_first = extent.first == Chunks::kNoChunk;
    // Relaxed: a hint.
    if (!is_first && by.works_as(chunks_.chunk(extent.first).user.load(std::memory_order_relaxed)) && open_more(kind, n))
      return true;
    // Threads on several CPUs get whole chunks: one whose chunk is small would take spans of another's. Relaxed: a hint.
    const bool in_steps = kFirstSpans < Units::kChunkSpans && is_first && !spans_.cpus_work_apart();
    const unsigned spans = in_steps ? std::max(kFirstSpans, std::bit_ceil(n)) : Units::kChunkSpans;
    std::uint32_t c;
    std::size_t end;
    for (;; ++extent.next) {  // a foreign mapping in a chunk stays there: the next one serves
      c = next_chunk(kind);
      if (c == Chunks::kNoChunk) return open_more(kind, n);
      end = (std::size_t{c} + 1) * Units::kChunkSpans;
      if (!space_.grow_tables(end)) return false;
      if (map_spans(c, 0, spans, kind)) break;
      if (errno != EEXIST) return false;
    }
    if (is_first) {
      extent.first = c;
      extent.open = spans;
    }
    ++extent.next;
    ++extent.chunks;
    // Grows before the chunk's spans can be had: relaxed, published with them.
    if (end > range_.count()) {
      range_.grow_to(end);
      if constexpr (requires { Config::note_span_count(end); }) Config::note_span_count(end);
    }
    chunks_.add(c, kind, by, spans);
    return true;
  }

  SpanRange<A, Config>& range_;
  Spans& spans_;
  Chunks& chunks_;
  HugeParts<A, Config, Pages>& huge_;
  Pages* pages_ = nullptr;
  bool prefault_ = false;
  std::size_t scarce_spans_ = SIZE_MAX;
  typename A::template atomic<bool> chunks_are_dear_{false};

  // Under the lock.
  alignas(base::kCacheLine) sync::Mutex<A, sync::CountWaits<A>> lock_;
  Space space_;
  Extent extents_[3]{};           // by ChunkKind
  std::uint32_t chunks_end_ = 0;  // chunks that belong to an extent
  std::uint32_t max_chunks_ = 0;
};

}  // namespace freehold::alloc
