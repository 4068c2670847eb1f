// SPDX-License-Identifier: MIT
// Blocks above the largest class, or with an alignment that no class has: runs of spans, or mapped one by one where the
// arena has no room.
//
//   Invariant: under a limit, a direct block is accounted for before another is admitted.
//
// Any thread; `cache` is the caller's own, or null. Locks, in the order in which they are taken: admission, under a limit,
// from the question whether a direct block may be had until it is accounted for; the registry's; direct blocks'; the
// arena's.
#pragma once
#include <algorithm>

#include "freehold/alloc/large/direct_blocks.hpp"
#include "freehold/alloc/large/kept_runs.hpp"
#include "freehold/alloc/return/kept_memory.hpp"
#include "freehold/alloc/spans/block_map.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
class LargeBlocks {
 public:
  using Classes = typename Config::Classes;
  using ArenaType = Arena<A, Config, Pages>;
  using Kept = KeptRuns<A, Config, Pages, Clock>;
  using Cache = typename Kept::Cache;
  using Run = typename Kept::Run;
  using Direct = DirectBlocks<A, Config, Pages>;

  constexpr LargeBlocks(ArenaType& arena, Direct& direct, const BlockMap<A, Config, Pages>& blocks, Kept& kept,
                        Relief<A, Config, Pages, Clock>& relief) noexcept
      : arena_(arena), direct_(direct), blocks_(blocks), kept_(kept), relief_(relief) {}

  // Sets `zero` to whether the block is known to read as zero. `room`: bytes behind the block, if they are to be had, into
  // which it can grow.
  [[nodiscard]] void* allocate_large(Cache* cache, std::size_t bytes, std::size_t alignment, bool& zero,
                                     std::size_t room = 0) noexcept {
    if (bytes > PTRDIFF_MAX) return nullptr;
    const bool fits = bytes <= ArenaType::kChunkBytes && alignment <= ArenaType::kChunkBytes;
    const bool grows = (bytes <= Config::kMostRunBytes && !arena_.runs().would_waste_addresses(bytes)) ||
                       alignment > Config::page_bytes() || direct_.has_most_small();
    if (fits && (grows || bytes <= Config::kMostRunBytes))
      if (void* const block = allocate_as_run(cache, bytes, alignment, zero, room, grows); block != nullptr) return block;
    void* const block = allocate_direct(cache, bytes, alignment, zero);
    // No address space is left for a mapping: the arena may have some that it used before.
    return block == nullptr && fits && !grows ? allocate_as_run(cache, bytes, alignment, zero, 0) : block;
  }
  // Frees the run that begins at span i, or, if i is kNoSpan, a direct block; anything else is misuse.
  void free_large(void* block, SpanIndex i) noexcept {
    const std::uint64_t now = Clock::now();
    if (i == kNoSpan || !arena_.runs().free_run(i, now)) {
      if (!direct_.free(block, now)) return blocks_.report(block);
      return relief_.tick(now);
    }
    direct_.relieve(now);
    relief_.tick(now);
  }
  // Changes a large block's size without copying; null: not possible, block untouched. May move pages (mremap).
  [[nodiscard]] void* resize_large(Cache* cache, void* block, std::size_t bytes) noexcept {
    if (bytes <= Classes::kMaxBytes || bytes > PTRDIFF_MAX - Config::page_bytes()) return nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    const SpanIndex i = blocks_.run_at(address);
    if (i == kNoSpan) {
      const std::size_t want = base::align_up(bytes, Config::page_bytes());
      const std::size_t old = direct_.bytes_of(block);
      const auto grow = [&] { return map_large(cache, want - old, [&] { return direct_.resize(block, want); }); };
      if (want <= old) return direct_.resize(block, want);
      if (arena_.purge().limit() == 0) return grow();
      const sync::Guard guard(admission_);
      return admit(cache, want - old) ? grow() : nullptr;
    }
    const Run run = arena_.runs().run(i);
    const std::size_t want = base::align_up(run.colour() + bytes, Config::page_bytes());
    const std::size_t old = run.pages() * Config::page_bytes();
    if (bytes <= ArenaType::kChunkBytes &&
        kept_.resize_run(cache, i, static_cast<std::uint32_t>(want / Config::page_bytes())))
      return block;
    return old < Run::kMoveBytes || want < old || run.colour() != 0 ? nullptr : move_out_of_arena(cache, block, old, want);
  }
  [[nodiscard]] auto& admission() noexcept { return admission_; }
  [[nodiscard]] const auto& admission() const noexcept { return admission_; }

 private:
  [[nodiscard]] void* allocate_as_run(Cache* cache, std::size_t bytes, std::size_t alignment, bool& zero, std::size_t room,
                                      bool grows = true) noexcept {
    bytes = std::max<std::size_t>(bytes, 1);
    const auto pages = static_cast<std::uint32_t>(base::ceil_div(bytes, Config::page_bytes()));
    const auto align = static_cast<unsigned>(std::max<std::size_t>(alignment >> ArenaType::kSpanShift, 1));
    Run run = alignment <= base::kCacheLine && room == 0 ? Run::coloured(bytes) : pages;
    // None for a block that leaves the arena when it grows; and a limit is for what the program asks for.
    if (room != 0 && bytes < Run::kMoveBytes && arena_.purge().limit() == 0) {
      const std::size_t spans = base::ceil_div(bytes + room, ArenaType::kSpanBytes);
      run = Run(pages, static_cast<unsigned>(std::min<std::size_t>(spans, ArenaType::kChunkSpans)));
    }
    const RunPlace place = kept_.allocate_run(cache, run, align, grows);
    if (place.first == kNoSpan) return room == 0 ? nullptr : allocate_as_run(cache, bytes, alignment, zero, 0, grows);
    zero = place.zero;
    return reinterpret_cast<void*>(arena_.address(place.first) + run.at(place.first).colour());
  }
  [[nodiscard]] void* allocate_direct(Cache* cache, std::size_t bytes, std::size_t alignment, bool& zero) noexcept {
    const std::size_t want = base::align_up(std::max<std::size_t>(bytes, 1), Config::page_bytes());  // bytes <= PTRDIFF_MAX
    const std::size_t extra = alignment > Config::page_bytes() ? alignment : 0;
    kept_.give_mapping(cache);
    const auto map = [&] {
      MappedBlock<A>* made = nullptr;
      void* const block =
          map_large(cache, want + extra, [&] { return direct_.allocate(want, alignment, zero, Clock::now(), &made); });
      if (block != nullptr) kept_.note_mapped(cache, made);
      return block;
    };
    if (arena_.purge().limit() == 0) return map();
    const sync::Guard guard(admission_);
    return admit(cache, want) ? map() : nullptr;
  }
  // Maps `bytes` by `map`, in place of free memory of the arena if need be.
  template <class Map>
  [[nodiscard]] void* map_large(Cache* cache, std::size_t bytes, Map map) noexcept {
    void* const block = map();
    if (block != nullptr) return block;
    const bool some = kept_.give_cached_runs(cache);
    return arena_.unmap_for(bytes, Clock::now()) || some ? map() : nullptr;
  }
  // True if the limit allows for `bytes` more, if need be after all that is kept has gone back.
  [[nodiscard]] bool admit(Cache* cache, std::size_t bytes) noexcept {
    const std::uint64_t now = Clock::now();
    return arena_.purge().admit(bytes, now) ||
           (direct_.drop_kept(~std::uint64_t{0}) != 0 && arena_.purge().admit(bytes, now)) ||
           (kept_.give_cached_runs(cache) && arena_.purge().admit(bytes, now));
  }
  // A large block that outgrows its place goes to a separate mapping, where it grows without being copied.
  [[nodiscard]] void* move_out_of_arena(Cache* cache, void* block, std::size_t old_bytes, std::size_t bytes) noexcept {
    kept_.give_mapping(cache);
    const auto move = [&] {
      void* const moved = direct_.adopt(block, old_bytes, bytes, Clock::now());
      if (moved != nullptr) free_large(block, blocks_.run_at(reinterpret_cast<std::uintptr_t>(block)));
      return moved;
    };
    if (arena_.purge().limit() == 0) return move();
    const sync::Guard guard(admission_);
    return admit(cache, bytes) ? move() : nullptr;
  }

  ArenaType& arena_;
  Direct& direct_;
  const BlockMap<A, Config, Pages>& blocks_;
  Kept& kept_;
  Relief<A, Config, Pages, Clock>& relief_;
  alignas(base::kCacheLine) sync::Mutex<A, sync::CountWaits<A>> admission_;
};

}  // namespace freehold::alloc
