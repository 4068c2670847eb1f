// SPDX-License-Identifier: MIT
// The members of DirectBlocks: its table, kept mappings, and blocks; see direct_blocks.hpp.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "freehold/alloc/large/direct_blocks.hpp"

namespace freehold::alloc {

// ---- the table --------------------------------------------------------------------------------------------------------

template <sync::Atomics A, class Config, os::PageSource Pages>
bool DirectBlocks<A, Config, Pages>::more_buckets() noexcept {
  const std::size_t count = bucket_count_ == 0 ? kFirstBuckets : bucket_count_ * 4;
  const std::size_t bytes = base::align_up(count * sizeof(Record*), Config::page_bytes());
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
      Record*& bucket = buckets_[bucket_of(r->memory.at)];
      r->next = bucket;
      bucket = r;
      r = next;
    }
  if (old != nullptr) (void)pages_->unmap(old, old_bytes);
  return true;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
void* DirectBlocks<A, Config, Pages>::insert_locked(Record* record, const Memory& memory, std::size_t bytes,
                                                    std::size_t counted) noexcept {
  record->memory = memory;
  record->mapped_bytes = memory.bytes;
  record->bytes.store(bytes, std::memory_order_relaxed);
  record->start.store(memory.at, std::memory_order_relaxed);
  Record*& bucket = buckets_[bucket_of(memory.at)];
  record->next = bucket;
  bucket = record;
  ++count_;
  apart_ += memory.apart();
  if (is_small(memory.bytes)) small_.store(small_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  live_bytes_.store(live_bytes() + memory.bytes, std::memory_order_relaxed);
  budget_->direct(static_cast<std::int64_t>(memory.bytes - counted));
  return reinterpret_cast<void*>(memory.at);
}

template <sync::Atomics A, class Config, os::PageSource Pages>
typename DirectBlocks<A, Config, Pages>::Record* DirectBlocks<A, Config, Pages>::remove_locked(
    std::uintptr_t block) noexcept {
  if (bucket_count_ == 0) return nullptr;
  for (Record** link = &buckets_[bucket_of(block)]; *link != nullptr; link = &(*link)->next) {
    Record* const record = *link;
    if (record->memory.at != block || !record->in_use()) continue;
    record->start.store(0, std::memory_order_relaxed);
    *link = record->next;
    --count_;
    apart_ -= record->memory.apart();
    if (is_small(record->memory.bytes)) small_.store(small_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    live_bytes_.store(live_bytes() - record->memory.bytes, std::memory_order_relaxed);
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
    if (r->memory.at == address) return r->size();
  return 0;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
BlockPlace DirectBlocks<A, Config, Pages>::around(const void* address) noexcept {
  const sync::Guard guard(lock_);
  for (std::size_t b = 0; b < bucket_count_; ++b)
    for (const Record* r = buckets_[b]; r != nullptr; r = r->next)
      if (reinterpret_cast<std::uintptr_t>(address) - r->memory.at < r->memory.bytes && r->in_use()) return place_of(*r);
  return {};
}

// ---- kept mappings ----------------------------------------------------------------------------------------------------

// The shortest mapping that is not shorter; else the longest; null: none is kept. Under the lock.
template <sync::Atomics A, class Config, os::PageSource Pages>
typename DirectBlocks<A, Config, Pages>::Kept* DirectBlocks<A, Config, Pages>::best_kept(std::size_t bytes) noexcept {
  Kept* best = nullptr;
  for (Kept& k : kept()) {
    const std::size_t found = best == nullptr ? 0 : best->memory.bytes, next = k.memory.bytes;
    if (found < bytes ? next > found : next >= bytes && next < found) best = &k;
  }
  return best;
}

// Takes from the kept mappings one of `bytes` and at most twice as long; else the longest of all, if it has `least` bytes.
// If that is 0, it rather takes the front of a longer one.
template <sync::Atomics A, class Config, os::PageSource Pages>
typename DirectBlocks<A, Config, Pages>::Memory DirectBlocks<A, Config, Pages>::take_kept_locked(
    std::size_t bytes, std::size_t least) noexcept {
  Kept* const best = best_kept(bytes);
  if (best == nullptr || best->memory.bytes < least) return {};
  if (best->memory.bytes < bytes && best->memory.joint_count == kMaxJoints)  // what comes behind it needs a joint
    return take_front(*best, best->memory.joint(kMaxJoints - 1));
  if (best->memory.bytes / 2 <= bytes) return take_out(*best);
  return least != 0 ? Memory{} : take_front(*best, bytes);
}

// Takes at most so much from the shortest kept mapping that has all of it, or the longest.
template <sync::Atomics A, class Config, os::PageSource Pages>
typename DirectBlocks<A, Config, Pages>::Memory DirectBlocks<A, Config, Pages>::take_piece(std::size_t most,
                                                                                           unsigned most_joints) noexcept {
  const sync::Guard guard(lock_);
  Kept* const best = best_kept(most);
  if (best == nullptr) return {};
  std::size_t bytes = std::min(most, best->memory.bytes);
  if (best->memory.joint_count > most_joints) bytes = std::min(bytes, best->memory.joint(most_joints));
  return bytes == best->memory.bytes ? take_out(*best) : take_front(*best, bytes);
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool DirectBlocks<A, Config, Pages>::may_join() noexcept {
  const sync::Guard guard(lock_);
  return !joins_are_refused_ && apart_ + kMaxJoints <= kMostApart;
}

// Memory of `bytes` that begins with the pages of `kept`, which is shorter, or none. None: the system refuses.
template <sync::Atomics A, class Config, os::PageSource Pages>
typename DirectBlocks<A, Config, Pages>::Memory DirectBlocks<A, Config, Pages>::lengthen(const Memory& kept,
                                                                                         std::size_t bytes,
                                                                                         std::uint64_t now) noexcept {
  if (kept.bytes != 0 && !is_small(bytes) && (kept.joint_count != 0 || keeps_some()) && may_join() &&
      !pages_->is_locked(reinterpret_cast<void*>(kept.at)))  // where the system would make the whole target resident first
    return join(kept, bytes, now);
  regret_if_soon(bytes - kept.bytes, now);
  return kept.bytes == 0 ? kept : grow(kept, bytes);
}

// `kept`, with new pages behind it. None: the system refuses.
template <sync::Atomics A, class Config, os::PageSource Pages>
typename DirectBlocks<A, Config, Pages>::Memory DirectBlocks<A, Config, Pages>::grow(const Memory& kept,
                                                                                     std::size_t bytes) noexcept {
  void* const grown = kept.joint_count != 0 ? nullptr : pages_->remap(reinterpret_cast<void*>(kept.at), kept.bytes, bytes);
  if (grown == nullptr) {
    end(kept.at, kept.bytes);
    return {};
  }
  return {reinterpret_cast<std::uintptr_t>(grown), bytes, {}, 0, kept.is_huge};
}

// The pages of `first` and of other kept mappings side by side, and new ones behind them. None: the system refuses.
template <sync::Atomics A, class Config, os::PageSource Pages>
typename DirectBlocks<A, Config, Pages>::Memory DirectBlocks<A, Config, Pages>::join(Memory first, std::size_t bytes,
                                                                                     std::uint64_t now) noexcept {
  void* const to = pages_->map(bytes);
  if (to == nullptr) {
    end(first.at, first.bytes);
    return {};
  }
  pages_->name(to, bytes, "freehold large");
  Memory joined{reinterpret_cast<std::uintptr_t>(to), bytes};
  std::size_t have = 0;
  for (Memory from = first; from.bytes != 0;) {
    const Memory piece = from.joint_count == 0 ? from : from.part(0, from.joint(0));
    const std::uintptr_t at = joined.at + have;
    if (!pages_->move_onto(reinterpret_cast<void*>(at), reinterpret_cast<void*>(piece.at), piece.bytes)) {
      // Since Linux 6.17 a move may be refused half-way: what was at both ends may be another thread's by now. These
      // addresses are lost, once in a process.
      if (have != 0) end(joined.at, have);
      if (const std::size_t behind = have + piece.bytes; behind < bytes) end(joined.at + behind, bytes - behind);
      if (piece.bytes < from.bytes) end(from.at + piece.bytes, from.bytes - piece.bytes);
      const sync::Guard guard(lock_);
      joins_are_refused_ = true;
      return {};
    }
    have += piece.bytes;
    if (have == bytes) break;
    joined.joints[joined.joint_count++] = static_cast<std::uint32_t>(have / Config::page_bytes());
    from = from.part(piece.bytes, from.bytes);
    if (from.bytes == 0 && joined.joint_count < kMaxJoints)
      from = take_piece(bytes - have, kMaxJoints - 1 - joined.joint_count);
  }
  regret_if_soon(bytes - have, now);
  return joined;
}

// The kept memory that was freed first, if that was at or before `before`.
template <sync::Atomics A, class Config, os::PageSource Pages>
typename DirectBlocks<A, Config, Pages>::Memory DirectBlocks<A, Config, Pages>::take_oldest_locked(
    std::uint64_t before) noexcept {
  const std::span<Kept> all = kept();
  return all.empty() || all.front().freed_at > before ? Memory{} : take_out(all.front());
}

// Under the lock.
template <sync::Atomics A, class Config, os::PageSource Pages>
typename DirectBlocks<A, Config, Pages>::Memory DirectBlocks<A, Config, Pages>::take_out(Kept& kept) noexcept {
  const Memory found = kept.memory;
  std::move(&kept + 1, &this->kept().back() + 1, &kept);
  change_kept(-1, -static_cast<std::int64_t>(found.bytes));
  return found;
}

// Under the lock.
template <sync::Atomics A, class Config, os::PageSource Pages>
typename DirectBlocks<A, Config, Pages>::Memory DirectBlocks<A, Config, Pages>::take_front(Kept& kept,
                                                                                           std::size_t bytes) noexcept {
  const Memory front = kept.memory.part(0, bytes);
  kept.memory = kept.memory.part(bytes, kept.memory.bytes);
  change_kept(0, -static_cast<std::int64_t>(bytes));
  return front;
}

// Under the lock.
template <sync::Atomics A, class Config, os::PageSource Pages>
void DirectBlocks<A, Config, Pages>::change_kept(std::int64_t count, std::int64_t bytes) noexcept {
  const auto add = [](Counter& counter, std::int64_t n) {
    counter.store(counter.load(std::memory_order_relaxed) + static_cast<std::uint64_t>(n), std::memory_order_relaxed);
  };
  add(kept_count_, count);
  add(kept_bytes_, bytes);
  budget_->kept(bytes);
}

// False: the budget has no room for it as it is, or too many are kept.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool DirectBlocks<A, Config, Pages>::keep_locked(const Memory& memory, std::uint64_t now) noexcept {
  const auto size = static_cast<std::int64_t>(memory.bytes);
  const std::size_t count = kept().size();
  if (memory.bytes > kMaxKeptBytes || count == kMaxKept || budget_->excess() + size > 0) return false;
  kept_[count] = {memory, now};
  change_kept(1, size);
  return true;
}

// Keeps an unused mapping, if the budget has room for it, be it in place of what was freed before.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool DirectBlocks<A, Config, Pages>::keep(const Memory& memory, std::uint64_t now) noexcept {
  const auto size = static_cast<std::int64_t>(memory.bytes);
  while (memory.bytes <= kMaxKeptBytes) {
    if (budget_->excess() + size > static_cast<std::int64_t>(kept_bytes())) return false;
    Memory old;
    {
      const sync::Guard guard(lock_);
      if (keep_locked(memory, now)) return true;
      old = take_oldest_locked(~std::uint64_t{0});
    }
    if (old.bytes == 0) return false;
    end(old.at, old.bytes);
    remember(old.bytes, now);
  }
  return false;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
std::size_t DirectBlocks<A, Config, Pages>::drop_kept(std::uint64_t before) noexcept {
  std::size_t bytes = 0;
  while (keeps_some()) {
    const Memory old = take_oldest(before);
    if (old.bytes == 0) break;
    end(old.at, old.bytes);
    bytes += old.bytes;
  }
  return bytes;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
void DirectBlocks<A, Config, Pages>::try_drop_one_kept(std::uint64_t before) noexcept {
  if (!keeps_some() || !lock_.try_lock()) return;
  const Memory old = take_oldest_locked(before);
  lock_.unlock();
  if (old.bytes != 0) end(old.at, old.bytes);
}

// Mappings that were kept while more was in use may be too much now.
template <sync::Atomics A, class Config, os::PageSource Pages>
void DirectBlocks<A, Config, Pages>::relieve(std::uint64_t now) noexcept {
  while (keeps_some() && budget_->excess() > 0) {
    const Memory old = take_oldest(~std::uint64_t{0});
    if (old.bytes == 0) break;
    end(old.at, old.bytes);
    remember(old.bytes, now);
  }
}

// The system may refuse to split one mapping into two: then at least the memory goes back.
template <sync::Atomics A, class Config, os::PageSource Pages>
void DirectBlocks<A, Config, Pages>::end(std::uintptr_t mapping, std::size_t bytes) noexcept {
  void* const at = reinterpret_cast<void*>(mapping);
  if (bytes != 0 && !pages_->unmap(at, bytes)) (void)pages_->purge(at, bytes);
}

template <sync::Atomics A, class Config, os::PageSource Pages>
void DirectBlocks<A, Config, Pages>::remember(std::size_t bytes, std::uint64_t now) noexcept {
  if (bytes > kMaxKeptBytes) return;
  const sync::Guard guard(lock_);
  ended_bytes_ = bytes + (BudgetType::is_soon(static_cast<std::uint32_t>(ended_at_ | 1), now) ? ended_bytes_ : 0);
  ended_at_ = now;
}

// `bytes` come from the system: where as many went back a moment ago, keeping them would have been better.
template <sync::Atomics A, class Config, os::PageSource Pages>
void DirectBlocks<A, Config, Pages>::regret_if_soon(std::size_t bytes, std::uint64_t now) noexcept {
  const sync::Guard guard(lock_);
  const std::size_t again = std::min(bytes, ended_bytes_);
  if (again == 0 || bytes > kMaxKeptBytes) return;
  ended_bytes_ -= again;
  if (BudgetType::is_soon(static_cast<std::uint32_t>(ended_at_ | 1), now))
    budget_->regret(static_cast<std::int64_t>(again), now);
}

// ---- blocks -----------------------------------------------------------------------------------------------------------

template <sync::Atomics A, class Config, os::PageSource Pages>
void* DirectBlocks<A, Config, Pages>::allocate(std::size_t bytes, std::size_t alignment, bool& zero, std::uint64_t now,
                                               MappedBlock<A>** made) noexcept {
  const std::size_t extra = alignment > Config::page_bytes() ? alignment : 0;
  if (bytes + extra < bytes) return nullptr;
  // A table that has to read as zero may stay untouched for the most part; other memory is about to be filled.
  bool huge = huge_ && !zero && extra == 0 && !is_small(bytes);
  zero = false;
  Memory m;
  Record* record;
  {
    const sync::Guard guard(lock_);
    record = new_record();
    if (record == nullptr) return nullptr;
    if (made != nullptr) *made = record;
    // Mappings shorter than a chunk stay whole and about as long as they are, so that blocks end where others ended. Of
    // longer ones the pages that are used again are worth more than those that are touched for the first time.
    if (extra == 0) m = take_kept_locked(bytes, is_small(bytes) ? bytes - bytes / 4 : 0);
    if (m.bytes >= bytes) return insert_locked(record, m, bytes);
    huge = huge && apart_ < kMostApart;
  }
  if (extra == 0) m = lengthen(m, bytes, now);
  if (m.bytes != 0) return insert(record, m, bytes);
  zero = true;
  if (huge) m = map(bytes, kHugeBytes);
  if (m.bytes != 0) {
    pages_->advise_huge(reinterpret_cast<void*>(m.at), bytes, true);
    m.is_huge = true;
  }
  if (m.bytes == 0) m = map(bytes, extra);
  if (m.bytes == 0 && drop_kept(~std::uint64_t{0}) != 0) m = map(bytes, extra);
  if (m.bytes == 0) {
    drop_record(record);
    return nullptr;
  }
  pages_->name(reinterpret_cast<void*>(m.at), bytes, "freehold large");
  return insert(record, m, bytes);
}

// A new mapping at a multiple of `alignment`; 0: of any page. None: the system refuses.
template <sync::Atomics A, class Config, os::PageSource Pages>
typename DirectBlocks<A, Config, Pages>::Memory DirectBlocks<A, Config, Pages>::map(std::size_t bytes,
                                                                                    std::size_t alignment) noexcept {
  void* const mapping = pages_->map(bytes + alignment);
  if (mapping == nullptr) return {};
  const auto start = reinterpret_cast<std::uintptr_t>(mapping);
  const std::uintptr_t block = alignment == 0 ? start : base::align_up(start, alignment);
  end(start, block - start);
  end(block + bytes, start + alignment - block);
  return {block, bytes};
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool DirectBlocks<A, Config, Pages>::free(const void* block, std::uint64_t now) noexcept {
  Memory memory;
  {
    const sync::Guard guard(lock_);
    Record* const record = remove_locked(reinterpret_cast<std::uintptr_t>(block));
    if (record == nullptr) return false;
    memory = record->memory;
    drop_record_locked(record);
    budget_->direct(-static_cast<std::int64_t>(memory.bytes));
    if (keep_locked(memory, now)) return true;  // the budget's rule holds
  }
  keep_or_end(memory, now);
  return true;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
void DirectBlocks<A, Config, Pages>::keep_or_end(const Memory& memory, std::uint64_t now) noexcept {
  if (keep(memory, now)) return;
  end(memory.at, memory.bytes);
  remember(memory.bytes, now);
  relieve(now);
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool DirectBlocks<A, Config, Pages>::take_back(MappedBlock<A>& block, std::uint64_t now, bool waits) noexcept {
  auto& record = static_cast<Record&>(block);
  if (waits)
    lock_.lock();
  else if (!lock_.try_lock())
    return false;
  // If two threads free a block at the same time, both may keep it.
  if (record.start.load(std::memory_order_relaxed) == 0 || record.in_use())
    base::fatal(base::HeapError::kDoubleFree, reinterpret_cast<void*>(record.memory.at));
  record.bytes.store(record.mapped_bytes, std::memory_order_relaxed);
  const Memory memory = remove_locked(record.memory.at)->memory;
  drop_record_locked(&record);
  budget_->direct(-static_cast<std::int64_t>(memory.bytes));
  const bool is_kept = keep_locked(memory, now);
  lock_.unlock();
  if (is_kept) return true;
  if (waits)
    keep_or_end(memory, now);
  else
    end(memory.at, memory.bytes);
  return true;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
void* DirectBlocks<A, Config, Pages>::resize(void* block, std::size_t bytes) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  Record* record;
  {
    const sync::Guard guard(lock_);
    record = remove_locked(address);
  }
  if (record == nullptr) return nullptr;
  Memory memory = record->memory;
  std::size_t used = record->size();
  const std::size_t counted = memory.bytes;
  void* result = nullptr;
  if (bytes <= counted && (bytes >= used || bytes == counted)) {
    result = block;
  } else if (is_small(bytes) && !is_small(counted) && has_most_small()) {
    result = nullptr;
  } else if (memory.joint_count != 0 && bytes < counted) {
    end(address + bytes, counted - bytes);
    memory = memory.part(0, bytes);
    result = block;
  } else if (memory.joint_count != 0) {  // the system grows one mapping at a time: copied once, it is one
    result = pages_->map(bytes);
    if (result != nullptr) {
      for (std::size_t at = 0; at < used; at += kCopyBytes) {
        const std::size_t step = std::min(kCopyBytes, used - at);
        std::memcpy(static_cast<char*>(result) + at, static_cast<char*>(block) + at, step);
        end(address + at, step);
      }
      end(address + used, counted - used);
      memory = {reinterpret_cast<std::uintptr_t>(result), bytes};
    }
  } else if (void* const moved = pages_->remap(block, counted, bytes); moved != nullptr) {
    memory = {reinterpret_cast<std::uintptr_t>(moved), bytes, {}, 0, memory.is_huge};
    result = moved;
  }
  if (result != nullptr) used = bytes;
  (void)insert(record, memory, used, counted);
  return result;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
void* DirectBlocks<A, Config, Pages>::adopt(void* content, std::size_t bytes, std::size_t new_bytes,
                                            std::uint64_t now) noexcept {
  if (is_small(new_bytes) && has_most_small()) return nullptr;
  Memory m;
  Record* record;
  {
    const sync::Guard guard(lock_);
    record = new_record();
    if (record == nullptr) return nullptr;
    m = take_kept_locked(new_bytes, new_bytes);
  }
  // A kept mapping has its pages, and what it is too long is room to grow: by copying all of that is taken.
  if (m.bytes != 0) {
    std::memcpy(reinterpret_cast<void*>(m.at), content, bytes);
    return insert(record, m, new_bytes);
  }
  regret_if_soon(new_bytes, now);
  void* const mapping = pages_->move_out(content, bytes, new_bytes);
  if (mapping == nullptr) {
    drop_record(record);
    return nullptr;
  }
  return insert(record, {reinterpret_cast<std::uintptr_t>(mapping), new_bytes}, new_bytes);
}

}  // namespace freehold::alloc
