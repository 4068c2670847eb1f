// SPDX-License-Identifier: MIT
// A histogram of latencies, with 16 steps for each power of two: exact to 6 %. Any thread.
// Cost: add() is one atomic addition on a counter of its own.
#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace freehold::process {

class Histogram {
 public:
  void add(std::uint64_t nanoseconds) noexcept {
    buckets_[bucket_of(nanoseconds)].fetch_add(1, std::memory_order_relaxed);  // relaxed: a statistic
  }
  [[nodiscard]] std::uint64_t count() const noexcept;
  // The middle of the step that holds the `share` quantile (0 to 1); 0 without latencies.
  [[nodiscard]] std::uint64_t percentile(double share) const noexcept;

 private:
  static constexpr unsigned kBits = 4;  // of the number of steps
  static constexpr std::size_t kBuckets = (64 - kBits + 1) << kBits;

  // Below 16 each number is a step; from there on the step is the position of the highest bit and the kBits bits after it.
  [[nodiscard]] static constexpr std::size_t bucket_of(std::uint64_t n) noexcept {
    if (n >> kBits == 0) return n;
    const auto shift = static_cast<unsigned>(std::bit_width(n)) - kBits - 1;
    return (std::size_t{shift + 1} << kBits) + ((n >> shift) & ((1u << kBits) - 1));
  }
  [[nodiscard]] static constexpr std::uint64_t middle_of(std::size_t bucket) noexcept {
    if (bucket >> kBits == 0) return bucket;
    const auto shift = static_cast<unsigned>(bucket >> kBits) - 1;
    const std::uint64_t least = ((std::uint64_t{1} << kBits) | (bucket & ((1u << kBits) - 1))) << shift;
    return least + (std::uint64_t{1} << shift) / 2;
  }
  std::array<std::atomic<std::uint64_t>, kBuckets> buckets_{};
};

}  // namespace freehold::process
