// SPDX-License-Identifier: MIT
// Which allocations of a thread get a guarded page: one in `rate` in the mean, at distances that are random and evenly
// spread between 1 and twice the rate. Allocations are counted where they come by, in batches. One of a batch can be chosen
// at most, so a batch that is larger than the rate has fewer. A thread's own; 8 bytes, all zero at first.
#pragma once
#include <algorithm>
#include <cstdint>
#include <ctime>

#include "freehold/os/libc.hpp"

namespace freehold::check {

class GuardSampler {
 public:
  static constexpr std::uint32_t kMostRate = 1U << 30;

  constexpr GuardSampler() noexcept = default;

  // Counts `calls` allocations, and says whether one of them is chosen. `rate` is at least 1.
  [[nodiscard]] bool is_due(std::uint32_t rate, std::uint32_t calls) noexcept {
    if (random_ == 0) begin(rate);
    until_ -= static_cast<std::int32_t>(calls);
    if (until_ > 0) return false;
    until_ = std::max(until_ + distance(rate), 0);
    return true;
  }
  // A bit for a decision of the caller's.
  [[nodiscard]] bool coin() noexcept { return (next() >> 16 & 1) != 0; }

 private:
  // xorshift32 (Marsaglia 2003). Never 0.
  std::uint32_t next() noexcept {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 17;
    random_ ^= random_ << 5;
    return random_;
  }
  // 1 to 2 * rate - 1, whose mean is the rate.
  [[nodiscard]] std::int32_t distance(std::uint32_t rate) noexcept {
    return static_cast<std::int32_t>(1 + next() % (2 * std::min(rate, kMostRate) - 1));
  }
  [[gnu::cold, gnu::noinline]] void begin(std::uint32_t rate) noexcept {
    timespec now{};
    os::Libc::clock_gettime(CLOCK_MONOTONIC, &now);
    // Threads that begin at the same time differ in where this is, runs of the program in both.
    const auto here = reinterpret_cast<std::uintptr_t>(this);
    random_ =
        static_cast<std::uint32_t>((here >> 4 ^ static_cast<std::uint64_t>(now.tv_nsec)) * 0x9E37'79B9'7F4A'7C15 >> 32) | 1;
    until_ = distance(rate);
  }

  std::uint32_t random_ = 0;  // 0: not begun
  std::int32_t until_ = 0;    // allocations until the next one that is chosen
};
static_assert(sizeof(GuardSampler) == 8);

}  // namespace freehold::check
