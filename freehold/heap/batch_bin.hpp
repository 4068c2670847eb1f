// SPDX-License-Identifier: MIT
// The free slots of one size class in one shard of a private heap: a free list that grows to one batch, a spare batch, and a
// depot of further ones, which other shards may take.
//
//   Invariants: the free list is shorter than batch_slots(c) or exactly a batch; the spare is null or a batch, and so is
//   each
//               batch in the depot.
//
// Externally locked: the depot by the heap's central lock, the rest by the shard's. `slabs` knows how a free slot is read.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "freehold/base/check.hpp"
#include "freehold/heap/bins.hpp"
#include "freehold/heap/slabs.hpp"

namespace freehold::heap {

template <sync::Atomics A, class Geometry>
struct BatchBin : Bins<A, Geometry>::Bin {
  using Classes = typename Geometry::Classes;
  using Free = FreeSlot<A>;
  template <class T>
  using var = typename A::template var<T>;

  // The slots of a batch: 8 KiB, 4 to 64 of them. In a table: a division takes as long as all the rest of a free.
  [[nodiscard]] static constexpr std::uint32_t batch_slots(unsigned c) noexcept { return kBatchSlots[c]; }
  static constexpr std::array<std::uint8_t, Classes::kCount> kBatchSlots = [] {
    std::array<std::uint8_t, Classes::kCount> slots{};
    for (unsigned c = 0; c < Classes::kCount; ++c)
      slots[c] = static_cast<std::uint8_t>(
          std::clamp(Geometry::kBatchBytes / Classes::slot_bytes(c), Geometry::kMinBatch, Geometry::kMaxBatch));
    return slots;
  }();
  // A batch's first slot has a second link, to the next batch.
  [[nodiscard]] static Free* next_batch(const auto& slabs, Free* batch) noexcept { return slabs.next(batch + 1); }
  static void set_next_batch(const auto& slabs, Free* batch, Free* following) noexcept {
    slabs.set_next(batch + 1, following);
  }

  // A slot from the free list, or one never used before; null if there is neither.
  [[nodiscard]] void* pop(unsigned c, const auto& slabs) noexcept {
    Free* const slot = this->free.load();
    if (slot == nullptr) return this->cut(Classes::slot_bytes(c));
    this->free.store(slabs.next(slot));
    count.store(count.load() - 1);
    this->live.store(this->live.load() + 1);
    return slot;
  }
  // Pre: the free list is no whole batch.
  void push(Free* slot, const auto& slabs) noexcept {
    slabs.set_next(slot, this->free.load());
    this->free.store(slot);
    count.store(count.load() + 1);
    this->live.store(this->live.load() - 1);
  }

  // The free list is `batch` from now on. Pre: it is empty.
  void fill(Free* batch, unsigned c) noexcept {
    this->free.store(batch);
    count.store(batch_slots(c));
  }
  // The same for at most a batch of loose slots. False: there are none.
  [[nodiscard]] bool fill_from(var<Free*>& loose, unsigned c, const auto& slabs) noexcept {
    Free* const first = loose.load();
    if (first == nullptr) return false;
    Free* last = first;
    std::uint32_t n = 1;
    for (; n < batch_slots(c) && slabs.next(last) != nullptr; ++n) last = slabs.next(last);
    loose.store(slabs.next(last));
    slabs.set_next(last, nullptr);
    this->free.store(first);
    count.store(n);
    return true;
  }
  // The spare batch is the free list from now on. False: no spare. Pre: the free list is empty.
  [[nodiscard]] bool fill_from_spare(unsigned c) noexcept {
    Free* const batch = spare.load();
    if (batch == nullptr) return false;
    spare.store(nullptr);
    fill(batch, c);
    return true;
  }
  // The free list, which is a batch, is the spare one from now on. Pre: the former spare is in the depot, or there was none.
  void set_batch_aside() noexcept {
    spare.store(this->free.load());
    this->free.store(nullptr);
    count.store(0);
  }
  // Depot. Pre of both: the central lock is held; of take_batch(): there is one.
  void put_batch(Free* batch, const auto& slabs) noexcept {
    set_next_batch(slabs, batch, depot.load());
    depot.store(batch);
  }
  [[nodiscard]] Free* take_batch(const auto& slabs) noexcept {
    Free* const batch = depot.load();
    depot.store(next_batch(slabs, batch));
    return batch;
  }

  // Moves all free slots to `loose`. Pre: everything is locked.
  void collect(var<Free*>& loose, const auto& slabs) noexcept {
    for (Free* batch = depot.load(); batch != nullptr;) {
      Free* const following = next_batch(slabs, batch);
      prepend(loose, batch, slabs);
      batch = following;
    }
    depot.store(nullptr);
    prepend(loose, this->free.load(), slabs);
    prepend(loose, spare.load(), slabs);
    this->free.store(nullptr);
    spare.store(nullptr);
    count.store(0);
  }
  void clear() noexcept {
    Bins<A, Geometry>::Bin::clear();
    count.store(0);
    pages.store(1);
    spare.store(nullptr);
    depot.store(nullptr);
  }

  // The invariants; returns the class's slots that belong to this bin, and adds the depot's batches to `batches`.
  [[nodiscard]] std::int64_t check(unsigned c, const auto& slabs, std::uint32_t& batches) noexcept {
    std::int64_t slots = this->live.load();
    std::uint32_t n = 0;
    for (Free* slot = this->free.load(); slot != nullptr; slot = slabs.next(slot)) ++n;
    FREEHOLD_ASSERT(n == count.load() && n <= batch_slots(c));
    slots += n + this->uncut(Classes::slot_bytes(c));
    if (Free* const batch = spare.load(); batch != nullptr) slots += check_batch(batch, c, slabs);
    for (Free* batch = depot.load(); batch != nullptr; batch = next_batch(slabs, batch), ++batches)
      slots += check_batch(batch, c, slabs);
    return slots;
  }

  var<std::uint32_t> count{0};  // in the free list
  var<std::uint32_t> pages{1};  // pages of the next run
  var<Free*> spare{nullptr};
  var<Free*> depot{nullptr};  // a list of batches; under the central lock

 private:
  static void prepend(var<Free*>& list, Free* first, const auto& slabs) noexcept {
    if (first == nullptr) return;
    Free* last = first;
    while (Free* const following = slabs.next(last)) last = following;
    slabs.set_next(last, list.load());
    list.store(first);
  }
  [[nodiscard]] static std::int64_t check_batch(Free* batch, unsigned c, const auto& slabs) noexcept {
    std::uint32_t n = 0;
    for (Free* slot = batch; slot != nullptr; slot = slabs.next(slot)) ++n;
    FREEHOLD_ASSERT(n == batch_slots(c));
    return n;
  }
};

}  // namespace freehold::heap
