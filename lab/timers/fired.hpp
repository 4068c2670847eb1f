// SPDX-License-Identifier: MIT
// The log of fired timers, in their order. Every callback of every structure writes the timer's number here and does nothing
// else. The log is read while the clock is stopped.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace freehold::cli::timers {

class FiredLog {
 public:
  void begin(std::size_t most) {
    numbers_.assign(most, 0);
    count_ = 0;
  }
  // An unexpected one is only counted.
  void note(std::uint32_t number) noexcept {
    if (count_ < numbers_.size()) numbers_[count_] = number;
    ++count_;
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::span<const std::uint32_t> numbers() const noexcept { return numbers_; }

 private:
  std::vector<std::uint32_t> numbers_;
  std::size_t count_ = 0;
};

// One structure in a worker, and one thread that handles.
inline FiredLog g_fired;

}  // namespace freehold::cli::timers
