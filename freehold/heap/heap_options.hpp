// SPDX-License-Identifier: MIT
// The options that a private heap is made with, and its statistics.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "freehold/base/callback.hpp"

namespace freehold::heap {

/// Chooses what an allocation does that would exceed the limit and for which on_limit found nothing. When memory itself is
/// out, or the limit is too low even for an empty heap, it always fails, and on_limit is not called. A failure is null from
/// the heap and its C interface, std::bad_alloc from the adapters to the C++ library.
enum class WhenLimited : std::uint8_t {
  kFail,  ///< fails
  kWait,  ///< waits until somebody gives memory back; PrivateHeap only
};

/// Chooses what release_all() does to a heap with blocks that plain code may still hold: those of a heap that a HeapScope
/// has entered.
enum class HeldBlocks : std::uint8_t {
  kRefuse,  ///< nothing, and says how many there are
  kEnd,     ///< ends them, too
};

/// The options that a private heap is made with.
struct HeapOptions {
  /// For reports; must live as long as the heap.
  const char* name = "";
  /// The most bytes that pages of slabs and large blocks may have in use, with 4 KiB the smallest unit; freed memory counts
  /// until its page is wholly free. nullopt: no limit.
  std::optional<std::size_t> limit_bytes{};
  /// Called with the bytes that would exceed the limit; true: try again. May free blocks of the heap, and must not throw. As
  /// large as a pointer at most: a lambda that captures one reference, or std::ref() of a larger function.
  base::Callback<bool(std::size_t bytes)> on_limit{};
  /// Chooses what happens at the limit if on_limit finds nothing.
  WhenLimited when_limited = WhenLimited::kFail;
  /// The memory node (NUMA) on which the heap's pages are to lie; -1: where the threads run that use them first. A no-op
  /// where the machine has one node or not this one, and under AddressSanitizer.
  int node = -1;
};

/// A snapshot of one heap. Units: bytes, except counts.
struct HeapStats {
  /// As the options gave it.
  const char* name = "";
  /// Blocks that are in use.
  std::uint64_t live_objects = 0;
  /// Bytes of the slots of these blocks.
  std::uint64_t live_bytes = 0;
  /// Bytes of pages that belong to a size class or to the heap itself, and of large blocks: what the limit counts.
  std::uint64_t used_bytes = 0;
  /// Bytes of slabs and large blocks: what the engine handed out.
  std::uint64_t held_bytes = 0;
  /// As the options gave it.
  std::optional<std::uint64_t> limit_bytes{};
  /// Slabs of 64 KiB.
  std::uint64_t slabs = 0;
  /// Blocks that have memory of their own, above the largest size class.
  std::uint64_t large_blocks = 0;
  /// Operations that met another thread; 0 for OwnerLockedHeap.
  std::uint64_t conflicts = 0;
  /// The most that used_bytes ever was.
  std::uint64_t peak_bytes = 0;
  /// Says whether the heap has ended before blocks that malloc gave in one of its scopes. What it holds goes back with the
  /// last of them.
  bool has_ended = false;
};

}  // namespace freehold::heap

namespace freehold {
using heap::HeapOptions;
}  // namespace freehold
