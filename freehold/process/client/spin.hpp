// SPDX-License-Identifier: MIT
// A short spin before sleeping, whose length follows its success. If the condition comes true within a few microseconds, the
// spin saves two system calls and a context switch. If it does not, because another thread needs this CPU, the spin soon
// becomes short.
//
// Threads: one.
#pragma once
#include <cstdint>

#include "freehold/sync/atomics.hpp"

namespace freehold::process {

class AdaptiveSpin {
 public:
  // Checks until `holds` is true, or for as long as spinning has been worth it. Returns whether it is true.
  template <class Holds>
  bool until(Holds holds) noexcept {
    for (std::uint32_t i = 0; i < length_; ++i) {
      if (holds()) {
        length_ += (kMost - length_) / 8;
        return true;
      }
      sync::NativeAtomics::pause();
    }
    length_ -= (length_ - kLeast) / 4;
    return false;
  }

 private:
  // Checks; one costs about 40 cycles. The most take about as long as a sleep and a wake-up across processes.
  static constexpr std::uint32_t kLeast = 8, kMost = 1000;
  std::uint32_t length_ = kMost / 4;
};

}  // namespace freehold::process
