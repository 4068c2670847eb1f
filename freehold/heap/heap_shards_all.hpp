// SPDX-License-Identifier: MIT
// The shards of a private heap with all of them locked: how every lock is taken, and the operations that need them all,
// which find a slot where memory is short, give free pages back, end every block, and count. Included by heap_shards.hpp,
// where each function is declared and documented.
//
//   const HeapShards::All all(shards);        // every shard and the central lists, until its end
//   void* slot = shards.find_slot(c);
//
// All shards are locked first, then the central lists; if a shard was made in between, all are given back and locked again.
// A shard's owner, which enters without a locked instruction, is shut out in two steps: its bias is revoked, and after one
// heavy fence for all shards the caller waits until no owner is inside.
//
// Cost: two atomics for each shard, and a heavy fence if a shard has an owner; then passes over free slots and slabs.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/base/member_offset.hpp"
#include "freehold/heap/heap_shards.hpp"

namespace freehold::heap {

// ---- the locks

template <sync::Atomics A, class Geometry, SlabSource Source, class Orders>
std::uint64_t HeapShards<A, Geometry, Source, Orders>::lock_all() noexcept {
  for (;;) {
    const std::uint64_t locked = lock_shards();
    lock_.lock();
    if (locked == made_shards()) return locked;
    unlock_all(locked);  // one was made since
  }
}

template <sync::Atomics A, class Geometry, SlabSource Source, class Orders>
std::uint64_t HeapShards<A, Geometry, Source, Orders>::lock_shards() noexcept {
  Core* const core = core_.load(Orders::kFind);
  std::uint64_t locked = 0;
  bool had_owner = false;
  for (unsigned i = 0; core != nullptr && i < core->shard_count; ++i) {
    Shard* const shard = core->shards[i].load(Orders::kFind);
    if (shard == nullptr) continue;
    sync::wait_until<A>([&] { return shard->lock.try_set_flag(); });
    had_owner |= shard->lock.revoke();
    locked |= base::bit(i);
  }
  if (had_owner) A::heavy_fence();
  for (std::uint64_t each = locked; each != 0; each &= each - 1)
    sync::wait_until<A>([&] { return !shard_at(*core, base::lowest_bit(each)).lock.is_entered(); });
  return locked;
}

template <sync::Atomics A, class Geometry, SlabSource Source, class Orders>
void HeapShards<A, Geometry, Source, Orders>::unlock_all(std::uint64_t locked) noexcept {
  lock_.unlock();
  Core* const core = core_.load(std::memory_order_relaxed);  // relaxed: read under the lock before
  for (; locked != 0; locked &= locked - 1) shard_at(*core, base::lowest_bit(locked)).lock.unlock();
}

template <sync::Atomics A, class Geometry, SlabSource Source, class Orders>
void HeapShards<A, Geometry, Source, Orders>::clear_words(std::uint64_t locked) noexcept {
  for (; locked != 0; locked &= locked - 1)
    shard_at(*core_.load(std::memory_order_relaxed), base::lowest_bit(locked)).lock.clear_words();
}

template <sync::Atomics A, class Geometry, SlabSource Source, class Orders>
void HeapShards<A, Geometry, Source, Orders>::reclaim_if_quiet() noexcept {
  Core* const core = core_.load(std::memory_order_relaxed);  // relaxed: we had a shard
  std::uint64_t locked = 0;
  bool quiet = true, had_owner = false;
  for (unsigned i = 0; quiet && i < core->shard_count; ++i) {
    Shard* const shard = core->shards[i].load(Orders::kFind);
    if (shard == nullptr) continue;
    quiet = shard->lock.try_set_flag();
    if (!quiet) continue;
    had_owner |= shard->lock.revoke();
    locked |= base::bit(i);
  }
  if (had_owner) A::heavy_fence();
  for (std::uint64_t each = locked; each != 0; each &= each - 1)
    quiet = !shard_at(*core, base::lowest_bit(each)).lock.is_entered() && quiet;
  lock_.lock();
  if (quiet && locked == made_shards()) reclaim();
  unlock_all(locked);
}

// ---- with everything locked

template <sync::Atomics A, class Geometry, SlabSource Source, class Orders>
void HeapShards<A, Geometry, Source, Orders>::collect() noexcept {
  Core& core = *core_.load(std::memory_order_relaxed);
  for (unsigned c = 0; c < Classes::kCount; ++c) {
    auto& loose = core.central.bins[c].free;
    core.batches[c].store(0);
    for_each_shard([&](Shard& shard) { shard.bins[c].collect(loose, slabs_); });
  }
}

template <sync::Atomics A, class Geometry, SlabSource Source, class Orders>
void* HeapShards<A, Geometry, Source, Orders>::find_slot(unsigned c) noexcept {
  if (!start()) return nullptr;
  collect();
  Core& core = *core_.load(std::memory_order_relaxed);
  void* slot = core.central.pop_watched(c, slabs_);
  for_each_shard([&](Shard& shard) {
    if (slot == nullptr) slot = shard.bins[c].cut(Classes::slot_bytes(c));
  });
  if (slot == nullptr) {
    reclaim();
    if (take_run(core.central.bins[c], c, 1)) slot = core.central.cut(c);
  }
  return slot;
}

template <sync::Atomics A, class Geometry, SlabSource Source, class Orders>
template <class F>
auto HeapShards<A, Geometry, Source, Orders>::with_free_slots(const F& f) noexcept {
  Core& core = *core_.load(std::memory_order_relaxed);
  const auto free_list = [&core](unsigned c) -> auto& { return core.central.bins[c].free; };
  const auto each_uncut = [&](const auto& visit) {
    const auto each = [&visit](auto& bin, unsigned c) {
      if (visit(c, bin.next.load(), bin.end.load())) bin.next.store(bin.end.load());
    };
    for (unsigned c = 0; c < Classes::kCount; ++c) {
      each(core.central.bins[c], c);
      for_each_shard([&](Shard& shard) { each(shard.bins[c], c); });
    }
  };
  return f(free_list, each_uncut);
}

template <sync::Atomics A, class Geometry, SlabSource Source, class Orders>
std::size_t HeapShards<A, Geometry, Source, Orders>::reclaim() noexcept {
  collect();
  const std::size_t bytes =
      with_free_slots([this](const auto& list, const auto& bumps) { return slabs_.reclaim(list, bumps); });
  reclaim_from_bytes_.store(std::max(kReclaimBytes, slabs_.used_bytes() + slabs_.used_bytes() / 2));
  return bytes;
}

template <sync::Atomics A, class Geometry, SlabSource Source, class Orders>
template <class Ended>
void HeapShards<A, Geometry, Source, Orders>::hand_over(Ended& ended, const HeapStats& last) noexcept {
  with_free_slots([&](const auto& list, const auto& bumps) { slabs_.hand_over(ended, last, list, bumps); });
}

template <sync::Atomics A, class Geometry, SlabSource Source, class Orders>
bool HeapShards<A, Geometry, Source, Orders>::release_all() noexcept {
  slabs_.release_all();
  if (Core* const core = core_.load(std::memory_order_relaxed); core != nullptr) {  // relaxed: under the lock
    core->central.clear();
    for (auto& batches : core->batches) batches.store(0);
    for_each_shard([](Shard& shard) {
      for (Bin& bin : shard.bins) bin.clear();
    });
  }
  reclaim_from_bytes_.store(kReclaimBytes);
  return is_awaited();
}

template <sync::Atomics A, class Geometry, SlabSource Source, class Orders>
void HeapShards<A, Geometry, Source, Orders>::add_live(HeapStats& stats) noexcept {
  Core* const core = core_.load(std::memory_order_relaxed);
  if (core == nullptr) return;
  core->central.add_live(stats);
  for_each_shard([&](Shard& shard) {
    for (unsigned c = 0; c < Classes::kCount; ++c) shard.bins[c].add_live(stats, Classes::slot_bytes(c));
  });
}

template <sync::Atomics A, class Geometry, SlabSource Source, class Orders>
void HeapShards<A, Geometry, Source, Orders>::add_to(LiveHeapLayout& layout, const void* heap) const noexcept {
  static_assert(Classes::kCount <= kMostLiveHeapClasses);
  const auto at = []<class T>(auto member) { return static_cast<std::uint32_t>(base::member_offset<T>(member)); };
  slabs_.add_to(layout, heap);
  layout.conflicts = base::distance(heap, &conflicts_);
  layout.core = base::distance(heap, &core_);
  layout.central_bins = at.template operator()<Core>(&Core::central);
  layout.shard_count = at.template operator()<Core>(&Core::shard_count);
  layout.shards = at.template operator()<Core>(&Core::shards);
  layout.shard_bins = at.template operator()<Shard>(&Shard::bins);
  layout.central_stride = sizeof(CentralBin);
  layout.central_live = at.template operator()<CentralBin>(&CentralBin::live);
  layout.shard_stride = sizeof(Bin);
  layout.shard_live = at.template operator()<Bin>(&Bin::live);
  layout.classes = Classes::kCount;
  for (unsigned c = 0; c < Classes::kCount; ++c) layout.slot_bytes[c] = static_cast<std::uint32_t>(Classes::slot_bytes(c));
}

template <sync::Atomics A, class Geometry, SlabSource Source, class Orders>
void HeapShards<A, Geometry, Source, Orders>::check_invariants() noexcept {
  slabs_.check_invariants();
  Core* const core = core_.load(std::memory_order_relaxed);
  for (unsigned c = 0; core != nullptr && c < Classes::kCount; ++c) {
    std::int64_t slots = core->central.bins[c].live.load() + static_cast<std::int64_t>(core->central.free_slots(c, slabs_));
    std::uint32_t batches = 0;
    for_each_shard([&](Shard& shard) { slots += shard.bins[c].check(c, slabs_, batches); });
    FREEHOLD_ASSERT(batches == core->batches[c].load());
    FREEHOLD_ASSERT(static_cast<std::size_t>(slots) == slabs_.slots_of(c));
  }
}

}  // namespace freehold::heap
