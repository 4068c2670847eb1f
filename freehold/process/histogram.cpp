// SPDX-License-Identifier: MIT
#include "freehold/process/histogram.hpp"

namespace freehold::process {

std::uint64_t Histogram::count() const noexcept {
  std::uint64_t n = 0;
  for (const auto& bucket : buckets_) n += bucket.load(std::memory_order_relaxed);
  return n;
}

std::uint64_t Histogram::percentile(double share) const noexcept {
  const auto wanted = static_cast<double>(count()) * share;
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    n += buckets_[i].load(std::memory_order_relaxed);
    if (n != 0 && static_cast<double>(n) >= wanted) return middle_of(i);
  }
  return 0;
}

}  // namespace freehold::process
