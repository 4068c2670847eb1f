// SPDX-License-Identifier: MIT
// Batches of free slots on their way from one thread to another, kept as lists of addresses. Slots that lie scattered over
// memory would cost an atomic each on the way into words and out again; a batch costs two for all of them. BestPool uses it
// when a drain finds hardly two slots in one word: pools that are nearly full, slots released in random order.
// (tcmalloc has the same between its thread caches and its central lists.)
//
//   Invariant: a batch is in the list of full ones, in the list of empty ones, or in the hands of one thread that is in
//   put() or take(). The slots of a full batch are free.
//
// Any thread; lock-free. put and take: two compare-exchanges each, on two lines that all threads share, per kBatch slots.
// Bookkeeping: at most 8.2 bytes for each kept slot, and no more than a sixteenth of the pool's slots, or one batch, is
// kept.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/pool/memory.hpp"
#include "freehold/pool/tagged_stack.hpp"

namespace freehold::pool {

template <sync::Atomics A, TaggedStackOrders O>
class TransferCache {
 public:
  using Entry = typename A::template var<void*>;
  static constexpr unsigned kBatch = 64;  // slots: what one word has

  // For a pool of so many slots.
  explicit TransferCache(std::size_t slots)
      : batches_(std::clamp<std::size_t>(slots / kShare / kBatch, 1, kMaxBatches)), links_(batches_.size()) {
    empty_.fill(links_, 0, batches_.size());
  }

  // Keeps n <= kBatch slots. False: there is no room.
  template <class Contention>
  [[nodiscard]] bool put(const Entry* slots, std::size_t n, Contention& contention) noexcept {
    const std::uint32_t mine = empty_.pop(links_, contention);
    if (mine == Head::kEmpty) return false;
    Batch& batch = batches_[mine];
    for (std::size_t i = 0; i < n; ++i) batch.slots[i].store(slots[i].load());
    batch.count.store(n);
    full_.push(links_, mine, contention);
    return true;
  }

  // Writes the slots of one batch, at most kBatch, to `out`; returns their number, 0 if the cache is empty.
  template <class Contention>
  [[nodiscard]] std::size_t take(Entry* out, Contention& contention) noexcept {
    const std::uint32_t mine = full_.pop(links_, contention);
    if (mine == Head::kEmpty) return 0;
    Batch& batch = batches_[mine];
    const std::size_t n = batch.count.load();
    for (std::size_t i = 0; i < n; ++i) out[i].store(batch.slots[i].load());
    empty_.push(links_, mine, contention);
    return n;
  }

  // Slots that are kept; at rest.
  [[nodiscard]] std::size_t kept() const noexcept {
    std::size_t n = 0;
    full_.for_each(links_, [&](std::uint32_t batch) { n += batches_[batch].count.load(); });
    return n;
  }

 private:
  static constexpr std::size_t kShare = 16;
  static constexpr std::size_t kMaxBatches = std::size_t{1} << 20;
  using Head = TaggedHead<A, O>;
  struct Batch {
    typename A::template var<std::size_t> count;
    Entry slots[kBatch];
  };

  ZeroedArray<Batch> batches_;
  StackLinks<A> links_;
  alignas(base::kCacheLine) Head full_;
  alignas(base::kCacheLine) Head empty_;
};

}  // namespace freehold::pool
