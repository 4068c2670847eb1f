// SPDX-License-Identifier: MIT
// The large blocks of one private heap: those above the largest size class, or aligned beyond what classes are. Each is
// separate memory from the heap's source, behind a header as slabs have it (slab.hpp).
//
//   void* block = larges.take(bytes, alignment);     // null: refused, see HeapMemory::refusal()
//   larges.give(header, block);                      // header: SlabType::of(block)
//
//   Invariant: used_bytes() is their part of HeapMemory::used_bytes(): each block with what lies before it.
//
// Externally locked, except block_of(). Cost: a call to the source for each.
#pragma once
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/base/member_offset.hpp"
#include "freehold/heap/heap_memory.hpp"
#include "freehold/heap/heap_options.hpp"
#include "freehold/heap/live_heap.hpp"
#include "freehold/heap/slab_list.hpp"

namespace freehold::heap {

template <sync::Atomics A, class Geometry, SlabSource Source>
class LargeBlocks {
  using Memory = HeapMemory<A, Geometry, Source>;
  template <class T>
  using var = typename A::template var<T>;

 public:
  using SlabType = Slab<A, Geometry>;

  // Null: refused.
  [[nodiscard]] void* take(Memory& memory, std::size_t bytes, std::size_t alignment) noexcept {
    const bool apart = alignment >= SlabType::kBytes;
    const std::size_t before = base::align_up(SlabType::kHeaderBytes, alignment);
    const std::size_t at = apart ? alignment : SlabType::kBytes;
    if (before > kMaxAlignment || bytes > ~std::size_t{0} / 2 - before) return memory.refuse(Refusal::kMemory);
    if (!memory.allows(bytes + before)) return memory.refuse_limited(bytes + before);
    auto* const start = static_cast<std::byte*>(memory.take(bytes + before, at));
    if (start == nullptr) return memory.refuse(Refusal::kMemory);
    std::byte* const place = start + (apart ? before - SlabType::kHeaderBytes : 0);
    SlabType* const header = memory.new_header(place, start, bytes + before, at, SlabKind::kLarge);
    header->large_bytes.store(bytes);
    header->slots_begin.store(static_cast<std::uint32_t>(before));
    if (!memory.put(header)) {
      memory.give_back(header, bytes + before);
      return memory.refuse(Refusal::kMemory);
    }
    blocks_.push(*header);
    count_.store(count_.load() + 1);
    bytes_.store(bytes_.load() + bytes);
    memory.add_used(bytes + before);
    memory.poison().on_allocate(start + before, bytes);
    return start + before;
  }
  // Pre: the header that leads from `block`, of this heap. Misuse ends in fatal().
  void give(Memory& memory, SlabType* header, void* block) noexcept {
    if (header->kind.load() != SlabKind::kLarge || block_of(*header) != block)
      return base::fatal(base::HeapError::kInteriorPointer, block);
    blocks_.remove(*header);
    count_.store(count_.load() - 1);
    bytes_.store(bytes_.load() - header->large_bytes.load());
    memory.poison().on_free(block, header->large_bytes.load());
    drop(memory, header);
  }
  // Gives all of them back. Ends every block.
  void release_all(Memory& memory) noexcept {
    for (SlabType* header = blocks_.first(); header != nullptr;) {
      SlabType* const following = blocks_.after(*header);
      drop(memory, header);
      header = following;
    }
    clear();
  }

  // f(header) for each of them, and may end it.
  template <class F>
  void for_each(const F& f) const noexcept {
    for (SlabType *header = blocks_.first(), *following; header != nullptr; header = following) {
      following = blocks_.after(*header);
      f(header);
    }
  }
  // Forgets all of them: they are another's.
  void clear() noexcept {
    blocks_.clear();
    count_.store(0);
    bytes_.store(0);
  }
  // The block with what lies before it.
  [[nodiscard]] static std::size_t extent_of(const SlabType& header) noexcept {
    return header.large_bytes.load() + header.slots_begin.load();
  }
  // The block behind the header.
  [[nodiscard]] static void* block_of(const SlabType& header) noexcept {
    return static_cast<std::byte*>(header.memory.load()) + header.slots_begin.load();
  }
  // Cost: a pass over the blocks.
  [[nodiscard]] std::size_t used_bytes() const noexcept {
    std::size_t bytes = 0;
    for (const SlabType* header = blocks_.first(); header != nullptr; header = blocks_.after(*header))
      bytes += extent_of(*header);
    return bytes;
  }
  void add_to(HeapStats& stats) const noexcept {
    stats.large_blocks += count_.load();
    stats.live_objects += count_.load();
    for (const SlabType* header = blocks_.first(); header != nullptr; header = blocks_.after(*header))
      stats.live_bytes += header->large_bytes.load();
  }
  void add_to(LiveHeapLayout& layout, const void* heap) const noexcept {
    layout.large_blocks = base::distance(heap, &count_);
    layout.large_bytes = base::distance(heap, &bytes_);
  }

 private:
  static constexpr std::size_t kMaxAlignment = std::size_t{1} << 31;

  static void drop(Memory& memory, SlabType* header) noexcept {
    const std::size_t extent = extent_of(*header);
    memory.subtract_used(extent);
    memory.give_back(header, extent);
  }

  SlabList<SlabType, &SlabType::next, &SlabType::previous> blocks_;
  var<std::size_t> count_{0};
  var<std::size_t> bytes_{0};  // their bytes, as they were asked for
};

}  // namespace freehold::heap
