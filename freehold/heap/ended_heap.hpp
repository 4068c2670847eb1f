// SPDX-License-Identifier: MIT
// The rest of a private heap that ended while plain code still had blocks of it, which a scope's malloc had given: each
// slab and each large block stays until its last block is freed. It gives no blocks.
//
//   ended.scoped()                        what HeapMap leads to from the heap's end on
//   ended.begin(parts, stats);            then for each part: ended.adopt(header, its blocks)
//   ended.finish();                       everything is adopted
//
//   Invariant: a header's `left` is its blocks in use, once it is adopted; before, minus what was freed already. A part goes
//   back when `left` becomes 0 by a free or by adopt(). The part with this object has one more: the object's, which ends
//   when all other parts are gone.
//
// Any thread may free; begin() to finish() are the ending heap's. Cost: two atomics for a free.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "freehold/alloc/scope/scope.hpp"
#include "freehold/base/member_offset.hpp"
#include "freehold/heap/heap_options.hpp"
#include "freehold/heap/large_blocks.hpp"
#include "freehold/heap/live_heap.hpp"
#include "freehold/heap/slab.hpp"
#include "freehold/heap/slab_source.hpp"

namespace freehold::heap {

template <sync::Atomics A, class Geometry, SlabSource Source, class Registration, class Orders>
class EndedHeap {
  template <class T>
  using atomic = typename A::template atomic<T>;

 public:
  using SlabType = Slab<A, Geometry>;
  using Larges = LargeBlocks<A, Geometry, Source>;
  static constexpr std::size_t kMostName = 64;

  // In a part of the heap, which it leaves last.
  EndedHeap(const alloc::ScopeEngine& engine, const Source& source, const char* name) noexcept
      : scoped_{&kCalls, this, &engine}, source_(source) {
    for (std::size_t i = 0; i < sizeof name_ - 1 && name[i] != '\0'; ++i) name_[i] = name[i];
  }
  EndedHeap(const EndedHeap&) = delete;
  EndedHeap& operator=(const EndedHeap&) = delete;

  [[nodiscard]] alloc::ScopedHeap& scoped() noexcept { return scoped_; }
  [[nodiscard]] const char* name() const noexcept { return name_; }

  void begin(std::size_t parts, const HeapStats& last) noexcept {
    parts_.store(parts, std::memory_order_relaxed);  // relaxed, all: others do not look before adopt()
    add(blocks_, last.live_objects);
    add(bytes_, last.live_bytes);
    add(held_, last.held_bytes);
    peak_bytes_ = last.peak_bytes;
    registration_.begin(*this);
  }
  void adopt(SlabType& header, std::uint32_t blocks) noexcept {
    header.heap.store(nullptr, std::memory_order_relaxed);  // relaxed: a heap that gets its address is made later
    if (is_home(header)) ++blocks;
    if (header.left.fetch_add(blocks, Orders::kLeavePart) + blocks == 0) give_back(header);
  }
  // Pre: all parts are adopted. The object may be gone afterwards.
  void finish() noexcept { end_part(); }

  void deallocate(void* block) noexcept {
    add(blocks_, ~std::uint64_t{0});
    add(bytes_, 0 - usable_size(block));
    leave(*SlabType::of(block));
  }
  [[nodiscard]] static std::size_t usable_size(const void* block) noexcept {
    const SlabType& header = *SlabType::of(block);
    return header.kind.load() == SlabKind::kLarge
               ? header.large_bytes.load()
               : Geometry::Classes::slot_bytes(header.page_class[header.page_of(block)].load() - 1U);
  }
  [[nodiscard]] HeapStats stats() const noexcept {
    HeapStats stats;
    stats.name = name_;
    stats.live_objects = blocks_.load(std::memory_order_relaxed);  // relaxed, all: figures, each true at its own moment
    stats.live_bytes = bytes_.load(std::memory_order_relaxed);
    stats.held_bytes = stats.used_bytes = held_.load(std::memory_order_relaxed);
    stats.peak_bytes = peak_bytes_;
    stats.has_ended = true;
    return stats;
  }

  // For readers outside the process.
  static void add_to(LiveHeapLayout& layout) noexcept {
    const auto at = [](auto member) { return static_cast<std::uint32_t>(base::member_offset<EndedHeap>(member)); };
    layout.ended_blocks = at(&EndedHeap::blocks_);
    layout.ended_bytes = at(&EndedHeap::bytes_);
    layout.ended_held_bytes = at(&EndedHeap::held_);
  }

 private:
  static constexpr alloc::HeapCalls kCalls{
      [](alloc::ScopedHeap&, std::size_t, std::size_t) noexcept -> void* { return nullptr; },
      [](alloc::ScopedHeap& heap, void* block) noexcept { static_cast<EndedHeap*>(heap.heap)->deallocate(block); },
      [](const alloc::ScopedHeap&, const void* block) noexcept { return usable_size(block); },
      [](const alloc::ScopedHeap&, const void* block, std::size_t bytes) noexcept {
        const std::size_t old = usable_size(block);
        return bytes <= old && bytes >= old / 2;
      },
      [](alloc::ScopedHeap&, std::size_t, void**, std::size_t) noexcept { return std::size_t{0}; },
      [](alloc::ScopedHeap& heap, void** blocks, std::size_t n) noexcept {
        static_cast<EndedHeap*>(heap.heap)->deallocate(std::exchange(blocks[0], blocks[n - 1]));
        return n - 1;
      },
      nullptr};

  // relaxed: figures.
  static void add(atomic<std::uint64_t>& to, std::uint64_t what) noexcept { to.fetch_add(what, std::memory_order_relaxed); }
  [[nodiscard]] bool is_home(const SlabType& header) const noexcept { return &header == SlabType::of(this); }
  // One of the part's blocks ends. The object may be gone afterwards.
  void leave(SlabType& header) noexcept {
    if (header.left.fetch_sub(1, Orders::kLeavePart) == 1) give_back(header);
  }
  void give_back(SlabType& header) noexcept {
    const Source source = source_;
    void* const memory = header.memory.load();
    const std::size_t alignment = header.alignment.load();
    const bool is_last = is_home(header);
    scoped_.engine->remove(header.start() + SlabType::kHeaderBytes);
    if (is_last) {
      registration_.end();
      this->~EndedHeap();
    } else {
      add(held_, 0 - (header.kind.load() == SlabKind::kLarge ? Larges::extent_of(header) : SlabType::kBytes));
    }
    source.give_back(memory, alignment);
    if (!is_last) end_part();
  }
  void end_part() noexcept {
    if (parts_.fetch_sub(1, Orders::kLeavePart) == 1) leave(*SlabType::of(this));
  }

  alloc::ScopedHeap scoped_;
  Source source_;
  atomic<std::size_t> parts_{0};  // except the one with this object, for which finish() counts
  atomic<std::uint64_t> blocks_{0}, bytes_{0}, held_{0};
  std::uint64_t peak_bytes_ = 0;
  [[no_unique_address]] typename Registration::Ended registration_;
  char name_[kMostName]{};
};

}  // namespace freehold::heap
