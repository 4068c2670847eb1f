// The engine's numbers for a real machine. The model tests use a Config of their own with a handful of tiny spans.
#pragma once
#include <cstddef>
#include <cstdint>

#include "freehold/alloc/size_classes.hpp"
#include "freehold/alloc/span.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/pool/word_pool.hpp"

namespace freehold::alloc {

struct NativeConfig {
  using Classes = SizeClasses;
  using Orders = pool::WordPoolOrders;

  static constexpr unsigned kSpanShift = 16;  // 64 KiB: 4096 slots of 16 bytes are 64 words, one summary word
  static constexpr unsigned kWordsPerSpan = 64;
  static constexpr std::size_t kPageBytes = os::kLargestPageBytes;
  static constexpr std::size_t kBaseAlignment = std::size_t{1} << 30;
  static constexpr std::size_t kDenseMaxBytes =
      2048;  // larger slots leave page tails untouched, which huge pages would fill

  // Growth, in spans. The first step covers a small program and is too small for a huge page under THP=always.
  static constexpr SpanIndex kFirstStepSpans = 16;    // 1 MiB
  static constexpr SpanIndex kMaxStepSpans = 512;     // 32 MiB
  static constexpr SpanIndex kReserveStepSpans = 64;  // 4 MiB, under a limited address space
  static constexpr SpanIndex kHugeAfterSpans = 32;    // 2 MiB of small objects before huge pages are asked for

  static constexpr std::uint64_t kRetainBytes = std::uint64_t{64}
                                                << 20;  // dirty runs kept beside a quarter of what is in use
  static constexpr std::uint64_t kScanMinBytes = std::uint64_t{16} << 20;  // heaps below are not searched for free pages

  // Thread caches.
  static constexpr std::size_t kBinBytes = 64 * 1024;  // a bin's slots at most, but for kMinSlots
  static constexpr unsigned kMaxSlots = 128;           // a bin's slots at most; half of it, one word, is a batch
  static constexpr std::size_t kFirstBytes = 2048;     // a new bin
  static constexpr unsigned kFirstSlots = 32;
  static constexpr std::size_t kThreadBytes = 16 * 1024;   // every thread may cache this much
  static constexpr std::size_t kThreadMaxBytes = 4 << 20;  // and more from the common budget, up to here
  static constexpr std::size_t kBudgetStepBytes = 32 * 1024;
  static constexpr unsigned kManyThreads = 256;          // per CPU; threads beyond share per-CPU caches
  static constexpr std::size_t kBudgetBytes = 16 << 20;  // the common budget

  // Where an arena that grows in steps may lie: far below the mappings of the system, above the program and its brk heap.
  static constexpr unsigned kStepPlaces = 16;
  static std::uintptr_t step_place(unsigned attempt, std::size_t bytes) noexcept {
    const auto stack = reinterpret_cast<std::uintptr_t>(&attempt);  // address space randomisation's bits
    const std::size_t alignment = bytes < kBaseAlignment ? kBaseAlignment : bytes;
    return (std::uintptr_t{1} << 44) + ((stack >> 12 & 0x3ff) + attempt) * alignment;
  }

  // Zeroed memory as an array of trivially constructed T: atomics of integers are valid as zero bytes here.
  template <class T>
  static T* table(void* memory, std::size_t) noexcept {
    return static_cast<T*>(memory);
  }
};

}  // namespace freehold::alloc
