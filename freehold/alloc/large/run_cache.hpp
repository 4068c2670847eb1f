// SPDX-License-Identifier: MIT
// A thread's free spans: blocks above 32 KiB come from them and go back to them by plain loads and stores, as slots do with
// thread_cache.hpp's arrays.
//
// A thread reserves up to four words of free bits from chunks. Neighbouring free runs merge by themselves, as in the chunks'
// own words. A span that is freed goes to the thread that frees it, so any thread may keep spans of any chunk.
//
//   Invariants: the words of all threads and those of the chunks are disjoint; a span in any of them is in no block.
//               dirty is a part of free, in each entry, and at most longest() of it are neighbours.
//
// It keeps the mapping of the last direct block, too, and needs no lock to free it and to use it again. DirectBlocks' table
// and the budget go on counting such a mapping as a block; it takes a word of the common budget.
//
// The number of words of a thread is bounded by a common budget alone. Its dirty spans count against the budget of free
// memory as those of the chunks do. They are given back when they are too many, or were not used for a while.
//
// Owner thread only; another thread may use it while the owner is outside the engine and kept from it
// (KeptRuns::reclaim_runs). The words are atomics for readers that only count. Source: LLFree's reserved trees (USENIX ATC
// 2023), here by thread.
#pragma once
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "freehold/alloc/spans/span.hpp"
#include "freehold/base/bits.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::alloc {

struct RunCacheOrders {
  // Acquire: pairs with kOpen; the owner sees what the other thread has left in the cache.
  static constexpr auto kAskClosed = std::memory_order_acquire;
  static constexpr auto kOpen = std::memory_order_release;
  // seq_cst: DueNote::note() and the purger, which clears it and then looks for use (store buffering).
  static constexpr auto kNoteUse = std::memory_order_seq_cst;
  static constexpr auto kLookForUse = std::memory_order_seq_cst;
};

// Says whether a thread's cache may hold spans, and was used since the last look.
enum class RunsUse : std::uint8_t { kNone, kIdle, kActive };

// The record of a direct block, as threads see it that do not hold DirectBlocks' lock. A thread that frees a block and finds
// its start here has the block's record, since no other has that start. Relaxed: the thread was handed the block, and with
// it what was written here under the lock; afterwards the block's thread alone writes.
template <sync::Atomics A>
struct MappedBlock {
  typename A::template atomic<std::uintptr_t> start{0};  // 0: it is no block's
  typename A::template atomic<std::size_t> bytes{0};     // 0: the block is free, and a thread keeps its mapping
  std::size_t mapped_bytes = 0;
};

template <sync::Atomics A, class Config>
class RunCache {
 public:
  static constexpr unsigned kWords = 4;
  static constexpr std::uint32_t kNoChunk = ~std::uint32_t{0};

  // Free spans of one chunk, and which of them may hold pages: a copy, so that the chunk's line is left to others.
  struct Reserved {
    // Relaxed, all of it: written by the owner alone, or in its place.
    [[nodiscard]] std::uint32_t chunk() const noexcept { return chunk_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t free() const noexcept { return free_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t dirty() const noexcept { return dirty_.load(std::memory_order_relaxed); }
    void set_chunk(std::uint32_t chunk) noexcept { chunk_.store(chunk, std::memory_order_relaxed); }
    void add(std::uint64_t free, std::uint64_t dirty) noexcept {
      free_.store(this->free() | free, std::memory_order_relaxed);
      dirty_.store(this->dirty() | (free & dirty), std::memory_order_relaxed);
      longest_ = 64;
    }
    void remove(std::uint64_t bits) noexcept {
      free_.store(free() & ~bits, std::memory_order_relaxed);
      dirty_.store(dirty() & ~bits, std::memory_order_relaxed);
    }
    // So many neighbouring dirty spans there may be. A search in vain lowers it, so that the next one costs no look.
    [[nodiscard]] unsigned longest() const noexcept { return longest_; }
    void set_longest(unsigned n) noexcept { longest_ = n; }

   private:
    typename A::template atomic<std::uint32_t> chunk_{kNoChunk};
    unsigned longest_ = 64;
    typename A::template atomic<std::uint64_t> free_{0}, dirty_{0};
  };

  // The entry of the chunk; null: no entry.
  [[nodiscard]] Reserved* find(std::uint32_t chunk) noexcept {
    for (Reserved& r : *this)
      if (r.chunk() == chunk) return &r;
    return nullptr;
  }
  // The entry that is of least use. Pre: there are some.
  [[nodiscard]] Reserved& least() noexcept {
    Reserved* least = &words_[0];
    for (Reserved& r : *this)
      if (std::popcount(r.free()) < std::popcount(least->free())) least = &r;
    return *least;
  }
  [[nodiscard]] Reserved* begin() noexcept { return words_; }
  [[nodiscard]] Reserved* end() noexcept { return words_ + count(); }
  [[nodiscard]] unsigned count() const noexcept { return count_.load(); }
  // Calls f(chunk, free, dirty) for each. Any thread; a glance.
  template <class F>
  void for_each(F&& f) const noexcept {
    for (const Reserved& r : words_)
      if (const std::uint32_t chunk = r.chunk(); chunk != kNoChunk) f(chunk, r.free(), r.dirty());
  }
  // One more, empty. Pre: count() < kWords.
  Reserved& add() noexcept {
    count_.store(count() + 1);
    return words_[count() - 1];
  }
  void remove_all() noexcept {
    for (Reserved& r : *this) r.set_chunk(kNoChunk);
    count_.store(0);
    may_keep_block = false;
  }
  // Words of the common budget that the thread has taken.
  [[nodiscard]] unsigned words() const noexcept { return count() + (may_keep_block ? 1 : 0); }

  // Spans that runs in use became more since that was reported to the arena, and how many of these were clean. The others
  // were dirty before, and what became less is dirty now.
  std::int64_t run_spans = 0, clean_spans = 0;
  bool began_alone = false;  // no other thread had allocated before: it may look into chunks that it does not keep
  [[nodiscard]] std::int64_t dirty_spans() const noexcept { return clean_spans - run_spans; }

 private:
  typename A::template var<unsigned> count_{0};  // the simulator sees by it whether two threads are in here at once
  Reserved words_[kWords];

 public:
  // The free block whose mapping the thread keeps; null: none.
  typename A::template var<MappedBlock<A>*> kept_block{nullptr};
  std::uint64_t kept_since = 0;  // when a look first found it, in milliseconds; 0: none did yet
  bool may_keep_block = false;   // which takes a word of the common budget
};

}  // namespace freehold::alloc
