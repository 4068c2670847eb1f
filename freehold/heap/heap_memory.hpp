// SPDX-License-Identifier: MIT
// The memory that a private heap takes from its source, and the account of it: the limit, the bytes in use and held, and why
// there was no memory. Slabs (slabs.hpp) and LargeBlocks (large_blocks.hpp) take from it.
//
//   if (!memory.allows(bytes)) return memory.refuse_limited(bytes);
//   void* const block = memory.take(bytes, alignment);
//   if (block == nullptr) return memory.refuse(Refusal::kMemory);
//   memory.add_used(bytes);                        // held: by new_header(), until give_back()
//
//   Invariant: used_bytes() <= the limit.
//
// Externally locked, except what never changes.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

#include "freehold/alloc/scope/scope.hpp"
#include "freehold/base/bits.hpp"
#include "freehold/base/member_offset.hpp"
#include "freehold/base/poison.hpp"
#include "freehold/heap/heap_options.hpp"
#include "freehold/heap/live_heap.hpp"
#include "freehold/heap/slab.hpp"
#include "freehold/heap/slab_source.hpp"

namespace freehold::heap {

// Why there is no memory: the limit, for now; the limit, whatever else is freed; the source has none.
enum class Refusal : std::uint8_t { kNone, kLimit, kBeyondLimit, kMemory };

template <sync::Atomics A, class Geometry, SlabSource Source>
class HeapMemory {
  template <class T>
  using var = typename A::template var<T>;

 public:
  using SlabType = Slab<A, Geometry>;

  HeapMemory(void* heap, std::size_t limit_bytes, Source source) noexcept
      : heap_(heap), limit_bytes_(limit_bytes), source_(source), poison_(checks() != nullptr) {}

  // ---- the account

  // Returns whether so much more may be in use.
  [[nodiscard]] bool allows(std::size_t bytes) const noexcept {
    return bytes <= limit_bytes_ && used_bytes() <= limit_bytes_ - bytes;
  }
  // The room that the limit leaves.
  [[nodiscard]] std::size_t allowed_bytes() const noexcept { return limit_bytes_ - used_bytes(); }
  // Notes why there is no memory. Returns null.
  std::nullptr_t refuse(Refusal why) noexcept {
    refusal_.store(why);
    return nullptr;
  }
  // The same for a request that the limit does not allow.
  std::nullptr_t refuse_limited(std::size_t bytes) noexcept {
    return refuse(bytes > limit_bytes_ ? Refusal::kBeyondLimit : Refusal::kLimit);
  }
  [[nodiscard]] Refusal refusal() const noexcept { return refusal_.load(); }

  void add_used(std::size_t bytes) noexcept {
    used_bytes_.store(used_bytes() + bytes, std::memory_order_relaxed);
    peak_bytes_.store(std::max(peak_bytes_.load(), used_bytes()));
  }
  void subtract_used(std::size_t bytes) noexcept { used_bytes_.store(used_bytes() - bytes, std::memory_order_relaxed); }
  // Returns whether less than an eighth is left, so that no thread should keep free slots. Any thread.
  [[nodiscard]] bool is_near_limit() const noexcept { return allowed_bytes() < limit_bytes_ / 8; }
  [[nodiscard]] std::size_t used_bytes() const noexcept { return used_bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t held_bytes() const noexcept { return held_bytes_.load(); }
  void add_to(HeapStats& stats) const noexcept {
    stats.used_bytes += used_bytes();
    stats.held_bytes += held_bytes_.load();
    if (limit_bytes_ != SIZE_MAX) stats.limit_bytes = limit_bytes_;
    stats.peak_bytes = peak_bytes_.load();
  }
  // The places of all that, from `heap` on.
  void add_to(LiveHeapLayout& layout, const void* heap) const noexcept {
    layout.used_bytes = base::distance(heap, &used_bytes_);
    layout.held_bytes = base::distance(heap, &held_bytes_);
    layout.limit_bytes = base::distance(heap, &limit_bytes_);
  }

  // ---- the source

  // Null: no memory.
  [[nodiscard]] void* take(std::size_t bytes, std::size_t alignment) noexcept { return source_.take(bytes, alignment); }
  [[nodiscard]] const Source& source() const noexcept { return source_; }
  // Makes a header at `at` for what take(bytes, alignment) returned.
  [[nodiscard]] SlabType* new_header(void* at, void* memory, std::size_t bytes, std::size_t alignment,
                                     SlabKind kind) noexcept {
    auto* const header = ::new (at) SlabType;
    header->heap.store(heap_, std::memory_order_relaxed);
    header->memory.store(memory);
    header->alignment.store(alignment);
    header->kind.store(kind);
    held_bytes_.store(held_bytes_.load() + bytes);
    return header;
  }
  // Tells free whose the blocks behind the header are, if scopes use the heap. False: there is no memory for that.
  [[nodiscard]] bool put(SlabType* header) noexcept { return scoped_ == nullptr || put(header, *scoped_); }
  [[nodiscard]] static bool put(SlabType* header, alloc::ScopedHeap& heap) noexcept {
    return heap.engine->put(header->start() + SlabType::kHeaderBytes, header->kind.load() == SlabKind::kPages, heap);
  }
  // From now on scopes use the heap. The caller puts what it holds already.
  void begin_scopes(alloc::ScopedHeap& scoped) noexcept { scoped_ = &scoped; }

  // Pre: nothing of it is used any more.
  void give_back(SlabType* header, std::size_t bytes) noexcept {
    void* const memory = header->memory.load();
    const std::size_t alignment = header->alignment.load();
    held_bytes_.store(held_bytes_.load() - bytes);
    poison_.unpoison(memory, bytes);
    if (scoped_ != nullptr) scoped_->engine->remove(header->start() + SlabType::kHeaderBytes);
    source_.give_back(memory, alignment);
  }

  // Returns whether the header is one of this heap. A checked build looks before it believes; otherwise a pointer to no
  // block may end the process in another way.
  [[nodiscard]] bool is_mine(const SlabType* header) const noexcept {
    return (!base::kChecked || looks_like_ours(header)) && header->heap.load(std::memory_order_relaxed) == heap_;
  }
  [[nodiscard]] const base::HeapPoison& poison() const noexcept { return poison_; }

  // ---- checked mode (checked_heap.hpp)

  // Null: the mode is off, or the source cannot.
  [[nodiscard]] const BlockChecks* checks() const noexcept {
    if constexpr (requires { source_.checks(); })
      return source_.checks();
    else
      return nullptr;
  }
  [[nodiscard]] void* heap() const noexcept { return heap_; }
  // A block that is no part of a slab, nor behind a header.
  void add_apart(std::size_t bytes) noexcept {
    add_used(bytes);
    held_bytes_.store(held_bytes_.load() + bytes);
  }
  void subtract_apart(std::size_t bytes) noexcept {
    subtract_used(bytes);
    held_bytes_.store(held_bytes_.load() - bytes);
  }

 private:
  // Returns whether the header may be read. (Before a block that is aligned as slabs are, one is taken on trust.)
  [[nodiscard]] bool looks_like_ours(const SlabType* header) const noexcept {
    return !base::is_aligned(reinterpret_cast<std::uintptr_t>(header), SlabType::kBytes) || source_.is_from(header);
  }

  // Never change.
  void* heap_;
  std::size_t limit_bytes_;
  [[no_unique_address]] Source source_;
  [[no_unique_address]] base::HeapPoison poison_;
  // Under the heap's lock.
  alignas(base::kCacheLine) typename A::template atomic<std::size_t> used_bytes_{0};  // relaxed: a hint without the lock
  var<std::size_t> held_bytes_{0};
  var<std::size_t> peak_bytes_{0};  // of used ones
  var<Refusal> refusal_{Refusal::kNone};
  alloc::ScopedHeap* scoped_ = nullptr;  // null: no scope has used the heap
};

}  // namespace freehold::heap
