// SPDX-License-Identifier: MIT
// Notices a loop that takes and frees blocks at the same sampled places again and again, so that it need not pay for a
// sample at every turn. A turn is a sampled block that was freed while it was one of its thread's last kRecent ones in use;
// a sampled block that outlives kRecent others is progress, and turns before it do not count. Places are hot after
// kMostTurns turns without progress, within one period of the coarse clock. A thread's own; all zero at first.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>

namespace freehold::profile {

class MarkHeat {
 public:
  static constexpr unsigned kRecent = 2;
  static constexpr unsigned kMostTurns = 64;
  static constexpr unsigned kPeriodShift = 4;  // 16 ms: 4,000 turns a second at most, about 1% of the time

  constexpr MarkHeat() noexcept = default;

  void note_allocated(const void* block) noexcept {
    const void** const free = find(nullptr);
    if (free != std::end(recent_)) {
      *free = block;
      return;
    }
    std::copy(recent_ + 1, std::end(recent_), recent_);
    recent_[kRecent - 1] = block;
    turns_ = 0;
  }
  void note_freed(const void* block, std::uint64_t milliseconds) noexcept {
    const void** const recent = find(block);
    if (recent == std::end(recent_)) return;
    *recent = nullptr;
    follow(milliseconds);
    if (turns_ < kMostTurns) ++turns_;
  }
  [[nodiscard]] bool is_hot(std::uint64_t milliseconds) noexcept {
    follow(milliseconds);
    return turns_ >= kMostTurns;
  }

 private:
  [[nodiscard]] const void** find(const void* block) noexcept {
    return std::find(std::begin(recent_), std::end(recent_), block);
  }
  void follow(std::uint64_t milliseconds) noexcept {
    const auto period = static_cast<std::uint32_t>(milliseconds >> kPeriodShift);
    if (period != period_) turns_ = 0;
    period_ = period;
  }

  const void* recent_[kRecent]{};  // in use; the oldest first, but for those that took a freed one's place
  std::uint32_t period_ = 0;
  std::uint32_t turns_ = 0;
};

}  // namespace freehold::profile
