// SPDX-License-Identifier: MIT
// Blocks with a mapping of their own: large ones, those aligned beyond a chunk, or moved out of the arena by realloc.
//
// They are found by address in a hash table. Freed mappings are kept while the budget allows, the latest ones, and mostly
// whole: the next block takes one of up to twice its size, or makes a shorter one grow, so that only the pages that are
// missing come from the system. Blocks and kept mappings grow by mremap: nothing is copied and held twice. A block of a
// chunk or more that no kept mapping has room for gets the pages of several, which are moved side by side. The system keeps
// these apart, so a block notes where it is joined, and is copied when it grows, a little at a time.
//
//   Invariant: live_bytes() is the sum of the mappings in the table. None smaller than a chunk is made once these take half
//              of the mappings that a process may have, so that the program can make its own and begin threads; more are
//              made only while the arena cannot serve, or by threads that ask at the same time.
//
// Locked inside; system calls are made outside the lock. Any thread. Cost: one lock and O(1), and a system call where memory
// comes or goes. Errors: null when the system refuses.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "freehold/alloc/large/run_cache.hpp"
#include "freehold/alloc/observe/live_figures.hpp"
#include "freehold/alloc/return/budget.hpp"
#include "freehold/alloc/spans/arena_types.hpp"
#include "freehold/alloc/spans/metadata.hpp"
#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages>
class DirectBlocks {
 public:
  using BudgetType = Budget<A, Config>;
  using Lock = sync::Mutex<A, sync::CountWaits<A>>;

  constexpr DirectBlocks() noexcept = default;

  // `huge`: whether huge pages may be asked for.
  void attach(Pages& pages, BudgetType& budget, bool huge) noexcept {
    pages_ = &pages;
    budget_ = &budget;
    huge_ = huge;
    metadata_.attach(pages);
  }

  // A block of `bytes` (a multiple of the page size) at a multiple of `alignment`. `zero`: whether it has to read as zero;
  // becomes whether it is known to.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment, bool& zero, std::uint64_t now,
                               MappedBlock<A>** made = nullptr) noexcept;
  // False, and nothing done: `block` is not one of ours.
  [[nodiscard]] bool free(const void* block, std::uint64_t now) noexcept;
  // Takes the mapping of a free block that a thread kept. False, and nothing done: another thread holds the lock, and the
  // caller does not wait.
  [[nodiscard]] bool take_back(MappedBlock<A>& block, std::uint64_t now, bool waits) noexcept;
  // Bytes of the block; 0: not one of ours.
  [[nodiscard]] std::size_t bytes_of(const void* block) noexcept;
  // The block in whose mapping the address lies; start is null if it lies in none. Looks at all: for reports of misuse.
  [[nodiscard]] BlockPlace around(const void* address) noexcept;
  // Calls f(BlockPlace) for each, under the lock.
  template <class F>
  void for_each(F&& f) noexcept {
    const sync::Guard guard(lock_);
    for (std::size_t b = 0; b < bucket_count_; ++b)
      for (const Record* r = buckets_[b]; r != nullptr; r = r->next)
        if (r->in_use()) f(place_of(*r));
  }
  // Changes the block's size, moving pages if need be. Null: not possible, or not one of ours; the block is untouched.
  [[nodiscard]] void* resize(void* block, std::size_t bytes) noexcept;
  // Takes the content of `bytes` pages in the arena into a separate block of `new_bytes`: its pages, or a copy in a kept
  // mapping. Null: not possible, untouched.
  [[nodiscard]] void* adopt(void* content, std::size_t bytes, std::size_t new_bytes, std::uint64_t now) noexcept;

  // Ends kept mappings, the oldest first, while the budget's rule is broken.
  void relieve(std::uint64_t now) noexcept;
  // Ends kept mappings that were freed at or before `before`. Returns bytes.
  std::size_t drop_kept(std::uint64_t before) noexcept;
  // Ends the oldest, if it was freed at or before `before`, and no thread holds the lock.
  void try_drop_one_kept(std::uint64_t before) noexcept;
  // Returns whether there are so many mappings shorter than a chunk that there should be no more. The system is asked when
  // there are some, once.
  [[nodiscard]] bool has_most_small() noexcept {
    const std::uint64_t small = small_.load(std::memory_order_relaxed);
    if (small < kFewSmall) return false;
    std::uint64_t most = most_small_.load(std::memory_order_relaxed);  // every thread finds the same
    if (most == 0) most_small_.store(most = std::max(kFewSmall, pages_->most_mappings() / 2), std::memory_order_relaxed);
    return small >= most;
  }
  [[nodiscard]] bool keeps_some() const noexcept { return kept_count_.load(std::memory_order_relaxed) != 0; }
  // Blocks in use, and those that threads have freed and whose mappings they keep; live_bytes() has both. Looks at all.
  struct Counts {
    std::size_t blocks = 0, bytes = 0, bytes_of_threads = 0;
  };
  [[nodiscard]] Counts count() noexcept {
    const sync::Guard guard(lock_);
    Counts counts;
    for (std::size_t b = 0; b < bucket_count_; ++b)
      for (const Record* r = buckets_[b]; r != nullptr; r = r->next) {
        counts.blocks += r->in_use() ? 1 : 0;
        (r->in_use() ? counts.bytes : counts.bytes_of_threads) += r->memory.bytes;
      }
    return counts;
  }
  [[nodiscard]] std::uint64_t live_bytes() const noexcept { return live_bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t kept_bytes() const noexcept { return kept_bytes_.load(std::memory_order_relaxed); }
  // See Budget::for_each_live_figure().
  template <class F>
  void for_each_live_figure(F&& f) const noexcept {
    f(LiveFigure::kDirectBytes, live_bytes_);
    f(LiveFigure::kKeptBytes, kept_bytes_);
    f(LiveFigure::kLockWaits, lock_.waits().counter());
  }
  [[nodiscard]] std::size_t metadata_bytes() const noexcept { return metadata_.mapped_bytes() + bucket_bytes_; }
  [[nodiscard]] Lock& lock() noexcept { return lock_; }

  // Call at rest.
  [[nodiscard]] bool check_invariants() noexcept {
    const sync::Guard guard(lock_);
    std::uint64_t bytes = 0;
    std::size_t count = 0, apart = 0;
    for (std::size_t b = 0; b < bucket_count_; ++b)
      for (const Record* r = buckets_[b]; r != nullptr; r = r->next, ++count) {
        bytes += r->memory.bytes;
        apart += r->memory.apart();
      }
    return bytes == live_bytes() && count == count_ && apart == apart_;
  }

 private:
  using Counter = typename A::template atomic<std::uint64_t>;
  static constexpr std::uint64_t kFewSmall = 1024;  // mappings shorter than a chunk that every system has room for
  static constexpr std::size_t kHugeBytes = std::size_t{2} << 20;
  static constexpr unsigned kMaxKept = 64;
  static constexpr std::size_t kMaxKeptBytes = std::size_t{64} << 20;  // larger mappings end when they are freed
  static constexpr std::size_t kFirstBuckets = 64;
  static constexpr std::size_t kCopyBytes = std::size_t{1} << 20;  // that are held twice while a block is copied
  // These bound the joints of one block, and the mappings of all blocks that stay apart: a process may have some 65,530.
  static constexpr unsigned kMaxJoints = 15, kMostApart = 4096;

  // One mapping, or some side by side.
  struct Memory {
    std::uintptr_t at = 0;
    std::size_t bytes = 0;               // bytes of all mappings
    std::uint32_t joints[kMaxJoints]{};  // in pages from `at`, ascending
    unsigned joint_count = 0;
    bool is_huge = false;  // it began at a huge page, where the system joins it to no other mapping

    // Mappings that it has beside those that all blocks could share.
    [[nodiscard]] std::size_t apart() const noexcept { return joint_count + (is_huge ? 1 : 0); }
    [[nodiscard]] std::size_t joint(unsigned i) const noexcept { return joints[i] * Config::page_bytes(); }
    [[nodiscard]] Memory part(std::size_t from, std::size_t end) const noexcept {
      Memory p{at + from, end - from, {}, 0, is_huge};
      for (unsigned i = 0; i < joint_count; ++i)
        if (joint(i) > from && joint(i) < end)
          p.joints[p.joint_count++] = static_cast<std::uint32_t>(joints[i] - from / Config::page_bytes());
      return p;
    }
  };
  struct Record : MappedBlock<A> {
    Record* next = nullptr;
    Memory memory;  // where the block begins, too

    [[nodiscard]] std::size_t size() const noexcept { return this->bytes.load(std::memory_order_relaxed); }
    [[nodiscard]] bool in_use() const noexcept { return size() != 0; }
  };
  struct Kept {
    Memory memory;
    std::uint64_t freed_at = 0;
  };

  [[nodiscard]] static BlockPlace place_of(const Record& r) noexcept {
    return {reinterpret_cast<void*>(r.memory.at), r.size(), true};
  }
  [[nodiscard]] static bool is_small(std::size_t bytes) noexcept {
    return bytes < (std::size_t{Config::kChunkSpans} << Config::kSpanShift);
  }
  [[nodiscard]] std::size_t bucket_of(std::uintptr_t block) const noexcept {
    return (block / Config::page_bytes() * 0x9e3779b97f4a7c15U >> 32) & (bucket_count_ - 1);
  }

  // Under the lock.
  [[nodiscard]] Record* new_record() noexcept {
    if (count_ >= bucket_count_ && !more_buckets() && bucket_count_ == 0) return nullptr;
    if (free_records_ != nullptr) return std::exchange(free_records_, free_records_->next);
    void* const memory = metadata_.allocate(sizeof(Record));
    return memory == nullptr ? nullptr : new (memory) Record;
  }
  [[nodiscard]] bool more_buckets() noexcept;
  void drop_record(Record* record) noexcept {
    const sync::Guard guard(lock_);
    drop_record_locked(record);
  }
  // Its memory stays a record: threads may look at it.
  void drop_record_locked(Record* record) noexcept { record->next = std::exchange(free_records_, record); }
  // `counted`: bytes of it that the budget knows of. A block that is taken out stays in the budget until it is freed.
  void* insert(Record* record, const Memory& memory, std::size_t bytes, std::size_t counted = 0) noexcept {
    const sync::Guard guard(lock_);
    return insert_locked(record, memory, bytes, counted);
  }
  void* insert_locked(Record* record, const Memory& memory, std::size_t bytes, std::size_t counted = 0) noexcept;
  [[nodiscard]] Record* remove_locked(std::uintptr_t block) noexcept;
  [[nodiscard]] Kept* best_kept(std::size_t bytes) noexcept;
  [[nodiscard]] Memory take_kept_locked(std::size_t bytes, std::size_t least) noexcept;
  [[nodiscard]] Memory take_piece(std::size_t most, unsigned most_joints) noexcept;
  [[nodiscard]] bool may_join() noexcept;
  [[nodiscard]] Memory lengthen(const Memory& kept, std::size_t bytes, std::uint64_t now) noexcept;
  [[nodiscard]] Memory map(std::size_t bytes, std::size_t alignment) noexcept;
  [[nodiscard]] Memory grow(const Memory& kept, std::size_t bytes) noexcept;
  [[nodiscard]] Memory join(Memory first, std::size_t bytes, std::uint64_t now) noexcept;
  [[nodiscard]] Memory take_oldest(std::uint64_t before) noexcept {
    const sync::Guard guard(lock_);
    return take_oldest_locked(before);
  }
  [[nodiscard]] Memory take_oldest_locked(std::uint64_t before) noexcept;
  [[nodiscard]] std::span<Kept> kept() noexcept { return {kept_, kept_count_.load(std::memory_order_relaxed)}; }
  [[nodiscard]] Memory take_out(Kept& kept) noexcept;
  [[nodiscard]] Memory take_front(Kept& kept, std::size_t bytes) noexcept;
  void change_kept(std::int64_t count, std::int64_t bytes) noexcept;
  [[nodiscard]] bool keep(const Memory& memory, std::uint64_t now) noexcept;
  [[nodiscard]] bool keep_locked(const Memory& memory, std::uint64_t now) noexcept;
  void end(std::uintptr_t mapping, std::size_t bytes) noexcept;
  void keep_or_end(const Memory& memory, std::uint64_t now) noexcept;
  void remember(std::size_t bytes, std::uint64_t now) noexcept;
  void regret_if_soon(std::size_t bytes, std::uint64_t now) noexcept;

  Pages* pages_ = nullptr;
  BudgetType* budget_ = nullptr;
  bool huge_ = false;
  alignas(base::kCacheLine) Lock lock_;
  Metadata<Pages> metadata_;
  Record** buckets_ = nullptr;
  std::size_t bucket_count_ = 0, bucket_bytes_ = 0;
  std::size_t count_ = 0, apart_ = 0;  // blocks, and what apart() says of them
  bool joins_are_refused_ = false;
  Kept kept_[kMaxKept]{};        // the oldest first
  std::size_t ended_bytes_ = 0;  // bytes of mappings that ended lately and are not regretted yet
  std::uint64_t ended_at_ = 0;   // milliseconds, the last of them
  Counter live_bytes_{0}, kept_bytes_{0}, kept_count_{0}, small_{0};  // written under the lock
  Counter most_small_{0};                                             // 0: was not asked yet
  Record* free_records_ = nullptr;
};

}  // namespace freehold::alloc

#include "freehold/alloc/large/direct_blocks_members.hpp"
