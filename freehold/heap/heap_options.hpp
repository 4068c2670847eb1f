// What a private heap is told when it is made, and what it tells.
#pragma once
#include <cstddef>
#include <cstdint>

namespace freehold::heap {

inline constexpr std::size_t kNoLimit = ~std::size_t{0};

// What an allocation does that the limit stands against and for which on_limit found nothing. When memory itself is out, or
// the limit were too low even for an empty heap, it always fails, and on_limit is not called. Failing is null from the heap
// and its C interface, std::bad_alloc from the faces of the C++ library.
enum class WhenLimited : std::uint8_t {
  kFail,
  kWait,  // waits until somebody gives memory back; PrivateHeap only
};

struct HeapOptions {
  const char* name = "";  // for reports; must live as long as the heap
  // Of memory in use by pages of slabs and by large blocks, with 4 KiB the smallest unit; what was freed counts until its
  // page is wholly free.
  std::size_t limit_bytes = kNoLimit;
  // Called when the limit stands in the way of `bytes`; true: try again. May free blocks of the heap, takes no lock of it.
  bool (*on_limit)(void* context, std::size_t bytes) noexcept = nullptr;
  void* on_limit_context = nullptr;
  WhenLimited when_limited = WhenLimited::kFail;
  // The memory node (NUMA) on which the heap's pages are to lie; -1: where the threads run that use them first. A no-op
  // where the machine has one node or not this one, and under AddressSanitizer.
  int node = -1;
};

struct HeapStats {
  const char* name = "";
  std::uint64_t live_objects = 0;
  std::uint64_t live_bytes = 0;  // of their slots, rounded up
  std::uint64_t used_bytes =
      0;  // of pages that belong to a class or to the heap itself, and of large blocks: what is limited
  std::uint64_t held_bytes = 0;  // of slabs and large blocks: what the engine handed out
  std::uint64_t limit_bytes = 0;
  std::uint64_t slabs = 0;
  std::uint64_t large_blocks = 0;
  std::uint64_t conflicts = 0;  // operations that met another thread; 0 for OwnerLockedHeap
};

}  // namespace freehold::heap
