// SPDX-License-Identifier: MIT
// The free slots of a private heap, by size class: a list of those that were freed, and a run of those that were never used.
//
//   Invariant: [next, end) is a multiple of the class's slot size; live counts what was popped and not pushed, and may be
//              negative where slots come back to other bins than they went out from.
//
// Externally locked. pop, push: a handful of instructions on one line, and the slot's first word.
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>

#include "freehold/heap/heap_options.hpp"
#include "freehold/heap/slabs.hpp"

namespace freehold::heap {

template <sync::Atomics A, class Geometry>
struct Bins {
  using Classes = typename Geometry::Classes;
  using Free = FreeSlot<A>;
  template <class T>
  using var = typename A::template var<T>;

  struct Bin {
    var<Free*> free{nullptr};
    var<std::byte*> next{nullptr};
    var<std::byte*> end{nullptr};
    var<std::int64_t> live{0};

    // A slot that was never used, or null.
    [[nodiscard]] void* cut(std::size_t slot_bytes) noexcept {
      std::byte* const slot = next.load();
      if (slot == end.load()) return nullptr;
      next.store(slot + slot_bytes);
      live.store(live.load() + 1);
      return slot;
    }
    [[nodiscard]] std::int64_t uncut(std::size_t slot_bytes) const noexcept {
      return (end.load() - next.load()) / static_cast<std::int64_t>(slot_bytes);
    }
    void clear() noexcept {
      free.store(nullptr);
      next.store(nullptr);
      end.store(nullptr);
      live.store(0);
    }
    void add_live(HeapStats& stats, std::size_t slot_bytes) const noexcept {
      stats.live_objects += static_cast<std::uint64_t>(live.load());
      stats.live_bytes += static_cast<std::uint64_t>(live.load()) * slot_bytes;
    }
  };

  // A slot of class c, or null.
  [[nodiscard]] void* pop(unsigned c) noexcept {
    Bin& bin = bins[c];
    if (Free* const slot = bin.free.load(); slot != nullptr) [[likely]] {
      bin.free.store(slot->next.load());
      bin.live.store(bin.live.load() + 1);
      return slot;
    }
    return cut(c);
  }
  // The same where memory checkers look on: `slabs` knows how to read a free slot.
  template <class S>
  [[nodiscard]] void* pop_watched(unsigned c, const S& slabs) noexcept {
    Bin& bin = bins[c];
    Free* const slot = bin.free.load();
    if (slot == nullptr) return cut(c);
    bin.free.store(slabs.next(slot));
    bin.live.store(bin.live.load() + 1);
    return slot;
  }
  [[nodiscard]] void* cut(unsigned c) noexcept { return bins[c].cut(Classes::slot_bytes(c)); }
  // Returns whether it was the last one that was out.
  bool push(unsigned c, void* block) noexcept {
    Bin& bin = bins[c];
    Free* const slot = ::new (block) Free{typename A::template var<Free*>(bin.free.load())};
    bin.free.store(slot);
    bin.live.store(bin.live.load() - 1);
    return bin.live.load() == 0;
  }
  template <class S>
  bool push_watched(unsigned c, void* block, const S& slabs) noexcept {
    Bin& bin = bins[c];
    auto* const slot = static_cast<Free*>(block);
    slabs.set_next(slot, bin.free.load());
    bin.free.store(slot);
    bin.live.store(bin.live.load() - 1);
    return bin.live.load() == 0;
  }
  void clear() noexcept {
    for (Bin& bin : bins) bin.clear();
  }
  void add_live(HeapStats& stats) const noexcept {
    for (unsigned c = 0; c < Classes::kCount; ++c) bins[c].add_live(stats, Classes::slot_bytes(c));
  }
  // Cost: a pass over the list; for tests.
  [[nodiscard]] std::size_t free_slots(unsigned c, const auto& slabs) const noexcept {
    auto n = static_cast<std::size_t>(bins[c].uncut(Classes::slot_bytes(c)));
    for (Free* slot = bins[c].free.load(); slot != nullptr; slot = slabs.next(slot)) ++n;
    return n;
  }

  Bin bins[Classes::kCount];
};

}  // namespace freehold::heap
