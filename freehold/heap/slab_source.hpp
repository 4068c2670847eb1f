// SPDX-License-Identifier: MIT
// The source of a private heap's slabs, as a concept, and the two sources that are used: Freehold's engine, and the same
// with its pages on one memory node.
//
//   take(bytes, alignment)         memory, or null: no memory; the alignment is a power of two from the slab's size on
//   give_back(block, alignment)    frees what take(..., alignment) returned
//   is_from(block)                 whether take() may have returned the block: for checked builds
//   checks()                       for checked mode, if the source can: see BlockChecks
//
// Any thread. The engine keeps runs of pages warm between one heap and the next. A program and a plugin may each have an
// engine of their own: a heap keeps to the engine of the shared object that made it, in whatever shared object the caller
// is.
#pragma once
#include <concepts>
#include <cstddef>
#include <new>

#include "freehold/alloc/scope/scope.hpp"
#include "freehold/base/poison.hpp"
#include "freehold/check/claim.hpp"
#include "freehold/heap/block_owners.hpp"
#include "freehold/heap/heap_options.hpp"
#include "freehold/os/nodes.hpp"

namespace freehold::heap {

template <class S>
concept SlabSource = requires(S& source, void* block, std::size_t bytes) {
  { source.take(bytes, bytes) } noexcept -> std::same_as<void*>;
  { source.give_back(block, bytes) } noexcept;
  { source.is_from(block) } noexcept -> std::same_as<bool>;
};

// Blocks that the source looks at one by one (checked mode).
struct BlockChecks {
  void* (*allocate)(check::Family, std::size_t bytes, std::size_t alignment) noexcept;
  // Returns whether the block was freed; false after a report.
  bool (*deallocate)(void* block, const check::Claim& claim) noexcept;
  // Exactly the bytes that were asked for. 0, and a report: that is no live block.
  std::size_t (*usable_size)(const void* block) noexcept;
  // The book of which heap has which block: as OwnedBlocks' functions.
  bool (*add)(OwnedBlocks& blocks, const void* block, std::size_t bytes) noexcept;
  std::size_t (*remove)(OwnedBlocks& blocks, const void* block) noexcept;
  void* (*remove_any)(OwnedBlocks& blocks) noexcept;
  bool (*has)(const OwnedBlocks& blocks, const void* block) noexcept;
  // All of them, of a heap that ends: plain code may free them.
  void (*orphan)(OwnedBlocks& blocks) noexcept;
  // The stacks that allocated them.
  void (*report)(const OwnedBlocks& blocks) noexcept;
};
// Those of the engine of this shared object, and its book. Null: it does not run in checked mode.
[[nodiscard, gnu::visibility("hidden")]] const BlockChecks* engine_checks() noexcept;

// Its parameter says how the including file is compiled: see base/poison.hpp.
template <bool kAsan>
class EngineSlabsOf {
 public:
  [[gnu::visibility("hidden")]] EngineSlabsOf() noexcept
      : take_(&take_here), give_back_(&give_back_here), is_from_(&is_from_here), bytes_of_(&bytes_of_here) {
    if constexpr (!kAsan) checks_ = engine_checks();
  }

  [[nodiscard]] void* take(std::size_t bytes, std::size_t alignment) const noexcept { return take_(bytes, alignment); }
  void give_back(void* block, std::size_t alignment) const noexcept { give_back_(block, alignment); }
  [[nodiscard]] bool is_from(const void* block) const noexcept { return is_from_(block); }
  // All that belongs to a block.
  [[nodiscard]] std::size_t bytes_of(const void* block) const noexcept { return bytes_of_(block); }
  // Null: the mode is off.
  [[nodiscard]] const BlockChecks* checks() const noexcept { return checks_; }

 private:
  [[gnu::visibility("hidden")]] static std::size_t bytes_of_here(const void* block) noexcept {
    return alloc::slab_bytes(block);
  }
  [[gnu::visibility("hidden")]] static void* take_here(std::size_t bytes, std::size_t alignment) noexcept {
    // AddressSanitizer's search for leaks does not look into memory that it has not seen allocated.
    if constexpr (kAsan) return ::operator new(bytes, std::align_val_t{alignment}, std::nothrow);
    return alloc::allocate_slab(bytes, alignment);
  }
  [[gnu::visibility("hidden")]] static void give_back_here(void* block, std::size_t alignment) noexcept {
    if constexpr (kAsan) return ::operator delete(block, std::align_val_t{alignment});
    alloc::deallocate_slab(block);
  }
  [[gnu::visibility("hidden")]] static bool is_from_here(const void* block) noexcept {
    return kAsan || alloc::slab_bytes(block) != 0;
  }

  void* (*take_)(std::size_t, std::size_t) noexcept;
  void (*give_back_)(void*, std::size_t) noexcept;
  bool (*is_from_)(const void*) noexcept;
  std::size_t (*bytes_of_)(const void*) noexcept;
  const BlockChecks* checks_ = nullptr;
};
using EngineSlabs = EngineSlabsOf<base::kAddressSanitizer>;
static_assert(SlabSource<EngineSlabs>);

// Slabs on one memory node, if the heap's options say so: pages are bound when a slab comes and unbound when it goes back,
// so that the engine finds them as they were. A no-op where there is one node or no such node, and where the system refuses.
// Cost: a system call for each slab (64 KiB) and each large block, both ways.
template <SlabSource Source, class Nodes = os::Nodes>
class NodeSlabs {
 public:
  NodeSlabs() noexcept = default;
  explicit NodeSlabs(Source source) noexcept : source_(source) {}

  // Pre: nothing was taken yet.
  void lie_on(int node) noexcept {
    // AddressSanitizer's memory is not page by page the heap's own.
    if (!base::kAddressSanitizer && node >= 0 && Nodes::count() > 1 && static_cast<unsigned>(node) < Nodes::count())
      node_ = node;
  }

  [[nodiscard]] void* take(std::size_t bytes, std::size_t alignment) const noexcept {
    void* const block = source_.take(bytes, alignment);
    if (node_ >= 0 && block != nullptr) (void)Nodes::bind(block, source_.bytes_of(block), static_cast<unsigned>(node_));
    return block;
  }
  void give_back(void* block, std::size_t alignment) const noexcept {
    if (node_ >= 0) Nodes::unbind(block, source_.bytes_of(block));
    source_.give_back(block, alignment);
  }
  [[nodiscard]] bool is_from(const void* block) const noexcept { return source_.is_from(block); }
  [[nodiscard]] const BlockChecks* checks() const noexcept
    requires requires(const Source& source) { source.checks(); }
  {
    return source_.checks();
  }

 private:
  Source source_{};
  int node_ = -1;
};

// The source, with the memory node that the options name.
template <SlabSource Source>
[[nodiscard]] Source placed(Source source, const HeapOptions& options) noexcept {
  if constexpr (requires { source.lie_on(options.node); }) source.lie_on(options.node);
  return source;
}

}  // namespace freehold::heap
