// SPDX-License-Identifier: MIT
// The shadow map of checked_fuzz: where every live block lies, and where the blocks lie that were freed last. A block that
// overlaps another is an error of the malloc; so is one at the place of a block that must still be in the quarantine.
//
// Invariant: the live blocks are sorted by address, and none ends behind the beginning of the next.
// Memory: fixed: nothing here calls malloc. Any thread; a block must leave before it is freed.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <mutex>

namespace freehold::fuzz {

class Shadow {
 public:
  // Freed blocks are remembered as long as fewer bytes than a part of this were freed after them. Not at all if it is so
  // small that what other threads are freeing may displace them.
  explicit Shadow(std::size_t quarantine) : quarantine_(quarantine < kLeastQuarantine ? 0 : quarantine) {}

  // A block was allocated. Returns what is wrong with it; null if nothing is.
  const char* enter(const void* p, std::size_t bytes) {
    const Range range = range_of(p, bytes);
    const std::lock_guard lock(mutex_);
    Range* const next = std::lower_bound(live_, live_ + count_, range, [](Range a, Range b) { return a.begin < b.begin; });
    if (next != live_ + count_ && next->begin < range.end) return "a new block overlaps the next one";
    if (next != live_ && next[-1].end > range.begin) return "a new block overlaps the one before";
    for (std::size_t i = first_freed_; i != last_freed_; ++i)
      if (freed_[i % kFreed].begin < range.end && range.begin < freed_[i % kFreed].end) {
        const Range freed = freed_[i % kFreed];
        std::printf("freed: %zu bytes at 0x%zx, %zu of %zu bytes before the last one\n", freed.end - freed.begin,
                    freed.begin, freed_bytes_, quarantine_);
        return "a new block lies in one that was freed just now";
      }
    if (count_ == kLive) return "more blocks than the shadow map holds";
    std::move_backward(next, live_ + count_, live_ + count_ + 1);
    *next = range;
    ++count_;
    return nullptr;
  }

  // A block is about to be freed, or to be resized, after which it enters again. False: no such block.
  bool leave(const void* p, std::size_t bytes, bool is_freed) {
    const Range range = range_of(p, bytes);
    const std::lock_guard lock(mutex_);
    Range* const found = std::lower_bound(live_, live_ + count_, range, [](Range a, Range b) { return a.begin < b.begin; });
    if (found == live_ + count_ || found->begin != range.begin || found->end != range.end) return false;
    std::move(found + 1, live_ + count_, found);
    --count_;
    if (is_freed) remember(range);
    return true;
  }

  // realloc has moved a block, and so freed its old place.
  void on_moved(const void* p, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    remember(range_of(p, bytes));
  }

 private:
  struct Range {
    std::uintptr_t begin = 0, end = 0;
  };
  static constexpr std::size_t kLeastQuarantine = 8 << 20;
  static constexpr std::size_t kShare = 64;  // threads or CPUs that may share a quarantine, and what they free in between
  static constexpr std::size_t kLive = 1 << 14, kFreed = 1 << 8;
  static constexpr std::size_t kOverhead = 512;  // more than a small block takes beyond its bytes

  // Blocks of no bytes have a place of their own, too.
  static Range range_of(const void* p, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(p);
    return {begin, begin + std::max<std::size_t>(bytes, 1)};
  }

  void remember(Range range) {
    const std::size_t bytes = range.end - range.begin + kOverhead;
    if (bytes > quarantine_ / kShare) {  // it may displace everything
      first_freed_ = last_freed_;
      freed_bytes_ = 0;
      return;
    }
    freed_[last_freed_++ % kFreed] = range;
    freed_bytes_ += bytes;
    while (last_freed_ - first_freed_ > kFreed - 1 || freed_bytes_ > quarantine_ / kShare) {
      const Range oldest = freed_[first_freed_++ % kFreed];
      freed_bytes_ -= oldest.end - oldest.begin + kOverhead;
    }
  }

  std::mutex mutex_;
  const std::size_t quarantine_;
  std::size_t count_ = 0, first_freed_ = 0, last_freed_ = 0, freed_bytes_ = 0;
  Range live_[kLive];
  Range freed_[kFreed];
};

}  // namespace freehold::fuzz
