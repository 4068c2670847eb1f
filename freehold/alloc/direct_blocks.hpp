// Blocks with a mapping of their own: larger than a chunk, aligned beyond one, or moved out of the arena by realloc. They
// are found by address in a hash table; a freed mapping is kept for the next block of about its size while the budget
// allows, and grows by mremap, so that contents are not copied and never held twice.
//
//   Invariant: live_bytes() is the sum of the mappings in the table. realloc makes none smaller than a chunk once there are
//              kMaxSmall, so that the system's mappings are bounded by a constant and by what large blocks live; more are
//              made only while the arena cannot serve.
//
// Locked inside; system calls are made outside the lock. Any thread. Cost: one lock and O(1), and a system call where memory
// comes or goes. Errors: null when the system refuses.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

#include "freehold/alloc/budget.hpp"
#include "freehold/alloc/metadata.hpp"
#include "freehold/base/bits.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages>
class DirectBlocks {
 public:
  using BudgetType = Budget<A, Config>;
  using Lock = sync::Mutex<A, sync::CountWaits<A>>;

  constexpr DirectBlocks() noexcept = default;

  void attach(Pages& pages, BudgetType& budget) noexcept {
    pages_ = &pages;
    budget_ = &budget;
    metadata_.attach(pages);
  }

  // A block of `bytes` (a multiple of the page size) at a multiple of `alignment`; `zero`: whether it reads as zero.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment, bool& zero, std::uint64_t now) noexcept;
  // False, and nothing done: `block` is not one of ours.
  [[nodiscard]] bool free(const void* block, std::uint64_t now) noexcept;
  // Bytes of the block; 0: not one of ours.
  [[nodiscard]] std::size_t bytes_of(const void* block) noexcept;
  // Whether the address lies in one of ours. Looks at all: for reports of misuse.
  [[nodiscard]] bool contains(const void* address) noexcept;
  // Changes the block's size, moving pages if need be. Null: not possible, or not one of ours; the block is untouched.
  [[nodiscard]] void* resize(void* block, std::size_t bytes) noexcept;
  // Takes the content of `bytes` pages in the arena into a block of its own of `new_bytes`. Null: not possible, untouched.
  [[nodiscard]] void* adopt(void* content, std::size_t bytes, std::size_t new_bytes) noexcept;

  // Ends kept mappings, the oldest first, while the budget's rule is broken.
  void relieve(std::uint64_t now) noexcept;
  // Ends kept mappings that were freed at or before `before`. Returns bytes.
  std::size_t drop_kept(std::uint64_t before) noexcept;
  // Ends the oldest, if it was freed at or before `before`, and nobody holds the lock.
  void try_drop_one_kept(std::uint64_t before) noexcept;
  [[nodiscard]] bool keeps_some() const noexcept { return kept_count_.load(std::memory_order_relaxed) != 0; }
  [[nodiscard]] std::uint64_t live_bytes() const noexcept { return live_bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t kept_bytes() const noexcept { return kept_bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t metadata_bytes() const noexcept { return metadata_.mapped_bytes() + bucket_bytes_; }
  [[nodiscard]] Lock& lock() noexcept { return lock_; }

  // Call at rest.
  [[nodiscard]] bool check_invariants() noexcept {
    const sync::Guard guard(lock_);
    std::uint64_t bytes = 0;
    std::size_t count = 0;
    for (std::size_t b = 0; b < bucket_count_; ++b)
      for (const Record* r = buckets_[b]; r != nullptr; r = r->next, ++count) bytes += r->mapping_bytes;
    return bytes == live_bytes() && count == count_;
  }

 private:
  using Counter = typename A::template atomic<std::uint64_t>;
  static constexpr std::size_t kMaxSmall = 1024;
  static constexpr unsigned kMaxKept = 8;
  static constexpr std::size_t kMaxKeptBytes = std::size_t{64} << 20;  // larger mappings end when they are freed
  static constexpr std::size_t kFirstBuckets = 64;
  static constexpr unsigned kRemembered = 4;

  struct Record {
    Record* next;
    std::uintptr_t block;
    std::uintptr_t mapping;
    std::size_t mapping_bytes;
    std::size_t bytes;
  };
  struct Kept {
    std::uintptr_t mapping = 0;
    std::size_t bytes = 0;
    std::uint64_t freed_at = 0;
  };

  [[nodiscard]] static bool is_small(std::size_t bytes) noexcept {
    return bytes < (std::size_t{Config::kChunkSpans} << Config::kSpanShift);
  }
  [[nodiscard]] bool has_most_small() noexcept {
    const sync::Guard guard(lock_);
    return small_ >= kMaxSmall;
  }
  [[nodiscard]] std::size_t bucket_of(std::uintptr_t block) const noexcept {
    return (block / Config::kPageBytes * 0x9e3779b97f4a7c15U >> 32) & (bucket_count_ - 1);
  }

  [[nodiscard]] Record* new_record() noexcept {
    const sync::Guard guard(lock_);
    if (count_ >= bucket_count_ && !more_buckets() && bucket_count_ == 0) return nullptr;
    return static_cast<Record*>(metadata_.allocate(sizeof(Record)));
  }
  [[nodiscard]] bool more_buckets() noexcept;
  void drop_record(Record* record) noexcept {
    const sync::Guard guard(lock_);
    metadata_.free(record, sizeof(Record));
  }
  // `counted`: bytes of it that the budget knows of. A block that is taken out stays in the budget until it is freed.
  void* insert(Record* record, const Record& value, std::size_t counted = 0) noexcept;
  [[nodiscard]] Record* remove(std::uintptr_t block) noexcept;
  [[nodiscard]] Kept take_kept(std::size_t bytes) noexcept;
  [[nodiscard]] Kept take_oldest(std::uint64_t before) noexcept {
    const sync::Guard guard(lock_);
    return take_oldest_locked(before);
  }
  [[nodiscard]] Kept take_oldest_locked(std::uint64_t before) noexcept;
  [[nodiscard]] Kept take_out(Kept& kept) noexcept;
  [[nodiscard]] bool keep(std::uintptr_t mapping, std::size_t bytes, std::uint64_t now) noexcept;
  void end(std::uintptr_t mapping, std::size_t bytes) noexcept;
  void remember(std::size_t bytes, std::uint64_t now) noexcept;
  void regret_if_soon(std::size_t bytes, std::uint64_t now) noexcept;

  Pages* pages_ = nullptr;
  BudgetType* budget_ = nullptr;
  alignas(base::kCacheLine) Lock lock_;
  Metadata<Pages> metadata_;
  Record** buckets_ = nullptr;
  std::size_t bucket_count_ = 0, bucket_bytes_ = 0;
  std::size_t count_ = 0, small_ = 0;
  Kept kept_[kMaxKept]{};
  Kept ended_[kRemembered]{};  // mappings that ended last: `mapping` is not valid
  unsigned next_ended_ = 0;
  Counter live_bytes_{0}, kept_bytes_{0}, kept_count_{0};  // written under the lock
};

// ---- the table --------------------------------------------------------------------------------------------------------

template <sync::Atomics A, class Config, os::PageSource Pages>
bool DirectBlocks<A, Config, Pages>::more_buckets() noexcept {
  const std::size_t count = bucket_count_ == 0 ? kFirstBuckets : bucket_count_ * 4;
  const std::size_t bytes = base::align_up(count * sizeof(Record*), Config::kPageBytes);
  auto** const buckets = static_cast<Record**>(pages_->map(bytes));
  if (buckets == nullptr) return false;
  Record** const old = buckets_;
  const std::size_t old_count = bucket_count_, old_bytes = bucket_bytes_;
  buckets_ = buckets;
  bucket_count_ = count;
  bucket_bytes_ = bytes;
  for (std::size_t b = 0; b < old_count; ++b)
    for (Record* r = old[b]; r != nullptr;) {
      Record* const next = r->next;
      Record*& bucket = buckets_[bucket_of(r->block)];
      r->next = bucket;
      bucket = r;
      r = next;
    }
  if (old != nullptr) (void)pages_->unmap(old, old_bytes);
  return true;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
void* DirectBlocks<A, Config, Pages>::insert(Record* record, const Record& value, std::size_t counted) noexcept {
  const sync::Guard guard(lock_);
  *record = value;
  Record*& bucket = buckets_[bucket_of(value.block)];
  record->next = bucket;
  bucket = record;
  ++count_;
  small_ += is_small(value.mapping_bytes) ? 1 : 0;
  live_bytes_.store(live_bytes() + value.mapping_bytes, std::memory_order_relaxed);
  budget_->direct(static_cast<std::int64_t>(value.mapping_bytes - counted));
  return reinterpret_cast<void*>(value.block);
}

template <sync::Atomics A, class Config, os::PageSource Pages>
typename DirectBlocks<A, Config, Pages>::Record* DirectBlocks<A, Config, Pages>::remove(std::uintptr_t block) noexcept {
  const sync::Guard guard(lock_);
  if (bucket_count_ == 0) return nullptr;
  for (Record** link = &buckets_[bucket_of(block)]; *link != nullptr; link = &(*link)->next) {
    Record* const record = *link;
    if (record->block != block) continue;
    *link = record->next;
    --count_;
    small_ -= is_small(record->mapping_bytes) ? 1 : 0;
    live_bytes_.store(live_bytes() - record->mapping_bytes, std::memory_order_relaxed);
    return record;
  }
  return nullptr;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
std::size_t DirectBlocks<A, Config, Pages>::bytes_of(const void* block) noexcept {
  const sync::Guard guard(lock_);
  if (bucket_count_ == 0) return 0;
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  for (const Record* r = buckets_[bucket_of(address)]; r != nullptr; r = r->next)
    if (r->block == address) return r->bytes;
  return 0;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool DirectBlocks<A, Config, Pages>::contains(const void* address) noexcept {
  const sync::Guard guard(lock_);
  for (std::size_t b = 0; b < bucket_count_; ++b)
    for (const Record* r = buckets_[b]; r != nullptr; r = r->next)
      if (reinterpret_cast<std::uintptr_t>(address) - r->mapping < r->mapping_bytes) return true;
  return false;
}

// ---- kept mappings ----------------------------------------------------------------------------------------------------

// A kept mapping of at least `bytes`, and at most a quarter more.
template <sync::Atomics A, class Config, os::PageSource Pages>
typename DirectBlocks<A, Config, Pages>::Kept DirectBlocks<A, Config, Pages>::take_kept(std::size_t bytes) noexcept {
  if (!keeps_some()) return {};
  const sync::Guard guard(lock_);
  Kept* best = nullptr;
  for (Kept& k : kept_)
    if (k.bytes >= bytes && k.bytes <= bytes + bytes / 4 && (best == nullptr || k.bytes < best->bytes)) best = &k;
  return best == nullptr ? Kept{} : take_out(*best);
}

// The kept mapping that was freed first, if that was at or before `before`.
template <sync::Atomics A, class Config, os::PageSource Pages>
typename DirectBlocks<A, Config, Pages>::Kept DirectBlocks<A, Config, Pages>::take_oldest_locked(
    std::uint64_t before) noexcept {
  Kept* oldest = nullptr;
  for (Kept& k : kept_)
    if (k.bytes != 0 && k.freed_at <= before && (oldest == nullptr || k.freed_at < oldest->freed_at)) oldest = &k;
  return oldest == nullptr ? Kept{} : take_out(*oldest);
}

// Under the lock.
template <sync::Atomics A, class Config, os::PageSource Pages>
typename DirectBlocks<A, Config, Pages>::Kept DirectBlocks<A, Config, Pages>::take_out(Kept& kept) noexcept {
  const Kept found = std::exchange(kept, {});
  kept_count_.store(kept_count_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  kept_bytes_.store(kept_bytes() - found.bytes, std::memory_order_relaxed);
  budget_->kept(-static_cast<std::int64_t>(found.bytes));
  return found;
}

// Keeps a mapping that nobody uses, if the budget has room for it.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool DirectBlocks<A, Config, Pages>::keep(std::uintptr_t mapping, std::size_t bytes, std::uint64_t now) noexcept {
  if (bytes > kMaxKeptBytes || budget_->excess() + static_cast<std::int64_t>(bytes) > 0) return false;
  const sync::Guard guard(lock_);
  for (Kept& k : kept_) {
    if (k.bytes != 0) continue;
    k = {mapping, bytes, now};
    kept_count_.store(kept_count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    kept_bytes_.store(kept_bytes() + bytes, std::memory_order_relaxed);
    budget_->kept(static_cast<std::int64_t>(bytes));
    return true;
  }
  return false;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
std::size_t DirectBlocks<A, Config, Pages>::drop_kept(std::uint64_t before) noexcept {
  std::size_t bytes = 0;
  while (keeps_some()) {
    const Kept old = take_oldest(before);
    if (old.bytes == 0) break;
    end(old.mapping, old.bytes);
    bytes += old.bytes;
  }
  return bytes;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
void DirectBlocks<A, Config, Pages>::try_drop_one_kept(std::uint64_t before) noexcept {
  if (!keeps_some() || !lock_.try_lock()) return;
  const Kept old = take_oldest_locked(before);
  lock_.unlock();
  if (old.bytes != 0) end(old.mapping, old.bytes);
}

// What was kept while more was in use may be too much now.
template <sync::Atomics A, class Config, os::PageSource Pages>
void DirectBlocks<A, Config, Pages>::relieve(std::uint64_t now) noexcept {
  while (keeps_some() && budget_->excess() > 0) {
    const Kept old = take_oldest(~std::uint64_t{0});
    if (old.bytes == 0) break;
    end(old.mapping, old.bytes);
    remember(old.bytes, now);
  }
}

// The system may refuse to split one mapping into two: then at least the memory goes back.
template <sync::Atomics A, class Config, os::PageSource Pages>
void DirectBlocks<A, Config, Pages>::end(std::uintptr_t mapping, std::size_t bytes) noexcept {
  void* const at = reinterpret_cast<void*>(mapping);
  if (!pages_->unmap(at, bytes)) (void)pages_->purge(at, bytes);
}

template <sync::Atomics A, class Config, os::PageSource Pages>
void DirectBlocks<A, Config, Pages>::remember(std::size_t bytes, std::uint64_t now) noexcept {
  if (bytes > kMaxKeptBytes) return;
  const sync::Guard guard(lock_);
  ended_[next_ended_++ % kRemembered] = {0, bytes, now};
}

// A mapping of about this size ended a moment ago: keeping it would have been better.
template <sync::Atomics A, class Config, os::PageSource Pages>
void DirectBlocks<A, Config, Pages>::regret_if_soon(std::size_t bytes, std::uint64_t now) noexcept {
  const sync::Guard guard(lock_);
  for (Kept& e : ended_) {
    if (e.bytes < bytes || e.bytes > bytes + bytes / 4) continue;
    if (BudgetType::is_soon(static_cast<std::uint32_t>(e.freed_at | 1), now))
      budget_->regret(static_cast<std::int64_t>(e.bytes), now);
    e = {};
    return;
  }
}

// ---- blocks -----------------------------------------------------------------------------------------------------------

template <sync::Atomics A, class Config, os::PageSource Pages>
void* DirectBlocks<A, Config, Pages>::allocate(std::size_t bytes, std::size_t alignment, bool& zero,
                                               std::uint64_t now) noexcept {
  const std::size_t extra = alignment > Config::kPageBytes ? alignment : 0;
  if (bytes + extra < bytes) return nullptr;
  Record* const record = new_record();
  if (record == nullptr) return nullptr;
  zero = true;
  if (extra == 0) {
    if (const Kept k = take_kept(bytes); k.bytes != 0) {
      zero = false;
      return insert(record, {nullptr, k.mapping, k.mapping, k.bytes, bytes});
    }
    regret_if_soon(bytes, now);
  }
  void* mapping = pages_->map(bytes + extra);
  if (mapping == nullptr && drop_kept(~std::uint64_t{0}) != 0) mapping = pages_->map(bytes + extra);
  if (mapping == nullptr) {
    drop_record(record);
    return nullptr;
  }
  pages_->name(mapping, bytes + extra, "freehold large");
  const auto start = reinterpret_cast<std::uintptr_t>(mapping);
  return insert(record, {nullptr, extra == 0 ? start : base::align_up(start, alignment), start, bytes + extra, bytes});
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool DirectBlocks<A, Config, Pages>::free(const void* block, std::uint64_t now) noexcept {
  Record* const record = remove(reinterpret_cast<std::uintptr_t>(block));
  if (record == nullptr) return false;
  const Record old = *record;
  drop_record(record);
  budget_->direct(-static_cast<std::int64_t>(old.mapping_bytes));
  if (!keep(old.mapping, old.mapping_bytes, now)) {
    end(old.mapping, old.mapping_bytes);
    remember(old.mapping_bytes, now);
  }
  relieve(now);
  return true;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
void* DirectBlocks<A, Config, Pages>::resize(void* block, std::size_t bytes) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  Record* const record = remove(address);
  if (record == nullptr) return nullptr;
  Record value = *record;
  const std::size_t counted = value.mapping_bytes;
  void* result = nullptr;
  if (value.block != value.mapping) {  // aligned: only what fits stays
    if (value.block + bytes <= value.mapping + value.mapping_bytes && bytes >= value.bytes / 2) result = block;
  } else if (bytes == value.mapping_bytes) {
    result = block;
  } else if (is_small(bytes) && !is_small(value.mapping_bytes) && has_most_small()) {
    result = nullptr;
  } else if (void* const moved = pages_->remap(block, value.mapping_bytes, bytes); moved != nullptr) {
    value.block = value.mapping = reinterpret_cast<std::uintptr_t>(moved);
    value.mapping_bytes = bytes;
    result = moved;
  }
  if (result != nullptr) value.bytes = bytes;
  (void)insert(record, value, counted);
  return result;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
void* DirectBlocks<A, Config, Pages>::adopt(void* content, std::size_t bytes, std::size_t new_bytes) noexcept {
  if (is_small(new_bytes) && has_most_small()) return nullptr;
  Record* const record = new_record();
  if (record == nullptr) return nullptr;
  void* const mapping = pages_->move_out(content, bytes, new_bytes);
  if (mapping == nullptr) {
    drop_record(record);
    return nullptr;
  }
  const auto start = reinterpret_cast<std::uintptr_t>(mapping);
  return insert(record, {nullptr, start, start, new_bytes, new_bytes});
}

}  // namespace freehold::alloc
