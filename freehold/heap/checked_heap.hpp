// SPDX-License-Identifier: MIT
// A private heap in checked mode (FREEHOLD_CHECK=1): it takes no slabs. Each block is one that the source looks at, with
// canaries, a quarantine that outlives the heap, and the words of check/misuse_report.hpp; block_owners.hpp knows which are
// this heap's. The heap's fast paths never have a slot then, and send every call here.
//
//   void* block = checked.take(memory, bytes, alignment);                 // null: refused, see HeapMemory::refusal()
//   checked.give(memory, block, {check::Family::kHeap, bytes, alignment});
//
//   Invariant: its blocks' bytes, as they were asked for, are its part of HeapMemory::used_bytes().
//
// All calls go through HeapMemory::checks(), to the engine and the book of the shared object that made the heap.
// Externally locked, as the heap's memory is. Cost: the source's locks, and one of all heaps.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "freehold/base/check.hpp"
#include "freehold/check/claim.hpp"
#include "freehold/heap/block_owners.hpp"
#include "freehold/heap/heap_memory.hpp"
#include "freehold/heap/heap_options.hpp"

namespace freehold::heap {

template <sync::Atomics A, class Geometry, SlabSource Source>
class CheckedHeap {
  using Memory = HeapMemory<A, Geometry, Source>;

 public:
  explicit CheckedHeap(const Memory& memory) noexcept : blocks_(memory.heap()) {}

  // All that follows: Pre: memory.checks() is not null.

  // Null: refused.
  [[nodiscard]] void* take(Memory& memory, std::size_t bytes, std::size_t alignment) noexcept {
    bytes = served(bytes);
    if (!memory.allows(bytes)) return memory.refuse_limited(bytes);
    void* const block = memory.checks()->allocate(check::Family::kHeap, bytes, alignment);
    if (block == nullptr) return memory.refuse(Refusal::kMemory);
    if (!memory.checks()->add(blocks_, block, bytes)) {
      (void)memory.checks()->deallocate(block, kUnknown);
      return memory.refuse(Refusal::kMemory);
    }
    memory.add_apart(bytes);
    return block;
  }
  // Misuse ends in fatal(); where that returns, the block stays what it is.
  void give(Memory& memory, void* block, check::Claim claim) noexcept {
    // The block leaves the book first: another thread may have it at once.
    const std::size_t bytes = memory.checks()->remove(blocks_, block);
    if (bytes == 0) return report_stranger(memory, block);
    if (claim.bytes != check::Claim::kUnsaid) claim.bytes = served(claim.bytes);
    if (memory.checks()->deallocate(block, claim)) return memory.subtract_apart(bytes);
    (void)memory.checks()->add(blocks_, block, bytes);  // its place in the book is there
  }
  // Ends every block.
  void release_all(Memory& memory) noexcept {
    memory.subtract_apart(blocks_.bytes());
    while (void* const block = memory.checks()->remove_any(blocks_)) (void)memory.checks()->deallocate(block, kUnknown);
  }
  // The heap ends, and plain code may still free its blocks.
  void orphan(Memory& memory) noexcept { memory.checks()->orphan(blocks_); }
  void report(const Memory& memory) const noexcept { memory.checks()->report(blocks_); }
  // 0, after a report: it is no block of this heap.
  [[nodiscard]] std::size_t usable_size(const Memory& memory, const void* block) const noexcept {
    if (memory.checks()->has(blocks_, block)) return memory.checks()->usable_size(block);
    report_stranger(memory, block);
    return 0;
  }
  void add_to(HeapStats& stats) const noexcept {
    stats.live_objects += blocks_.count();
    stats.live_bytes += blocks_.bytes();
  }
  [[nodiscard]] std::size_t used_bytes() const noexcept { return blocks_.bytes(); }

 private:
  static constexpr check::Claim kUnknown{check::Family::kHeap};

  // A block of none has a byte, as in a heap that is not checked.
  [[nodiscard]] static constexpr std::size_t served(std::size_t bytes) noexcept { return std::max<std::size_t>(bytes, 1); }

  // The source knows what it is, unless it is a live block: then it is another heap's, or malloc's.
  static void report_stranger(const Memory& memory, const void* block) noexcept {
    if (memory.checks()->usable_size(block) != 0) base::fatal(base::HeapError::kForeignPointer, block);
  }

  OwnedBlocks blocks_;
};

}  // namespace freehold::heap
