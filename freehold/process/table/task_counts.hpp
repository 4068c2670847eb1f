// SPDX-License-Identifier: MIT
// The figures of one client's tasks, and the histogram of their latencies: 16 steps for each power of two, exact to 6 %.
//
// Any thread. Cost: one atomic addition for each call, on a counter of that kind alone. relaxed, all: statistics.
#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "freehold/process/supervisor/pool_stats.hpp"

namespace freehold::process {

class Histogram {
 public:
  void add(std::uint64_t nanoseconds) noexcept { buckets_[bucket_of(nanoseconds)].fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t count() const noexcept {
    std::uint64_t n = 0;
    for (const auto& bucket : buckets_) n += bucket.load(std::memory_order_relaxed);
    return n;
  }
  // The middle of the step that holds the `share` quantile (0 to 1); 0 without latencies.
  [[nodiscard]] std::uint64_t percentile(double share) const noexcept {
    const auto wanted = static_cast<double>(count()) * share;
    std::uint64_t n = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      n += buckets_[i].load(std::memory_order_relaxed);
      if (n != 0 && static_cast<double>(n) >= wanted) return middle_of(i);
    }
    return 0;
  }

 private:
  static constexpr unsigned kBits = 4;  // bits of the number of steps
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

class TaskCounts {
 public:
  void count_submitted() noexcept { submitted_.fetch_add(1, std::memory_order_relaxed); }
  void count_refused() noexcept { refused_.fetch_add(1, std::memory_order_relaxed); }
  // `nanoseconds`: from its submission.
  void count_delivered(std::uint64_t nanoseconds, bool has_output) noexcept {
    if (!has_output) failed_.fetch_add(1, std::memory_order_relaxed);
    latencies_.add(nanoseconds);
  }
  [[nodiscard]] ClientStats stats() const noexcept {
    return {.submitted = submitted_.load(std::memory_order_relaxed),
            .delivered = latencies_.count(),
            .failed = failed_.load(std::memory_order_relaxed),
            .refused = refused_.load(std::memory_order_relaxed),
            .median = latencies_.percentile(0.5),
            .p90 = latencies_.percentile(0.9),
            .p99 = latencies_.percentile(0.99)};
  }

 private:
  std::atomic<std::uint64_t> submitted_{0}, failed_{0}, refused_{0};
  Histogram latencies_;
};

}  // namespace freehold::process
