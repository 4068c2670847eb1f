// A short spin before sleeping, whose length follows its success: where what is waited for comes within a few microseconds,
// two system calls and a switch are saved; where it does not, because somebody else needs this CPU, almost nothing is lost.
#pragma once
#include <cstdint>

#include "freehold/sync/atomics.hpp"

namespace freehold::process {

class AdaptiveSpin {
 public:
  // Looks until it holds, or for as long as spinning has been worth it. Returns whether it holds.
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
  // Looks; one costs about 40 cycles. The most is about as long as a sleep and a wake-up across processes take.
  static constexpr std::uint32_t kLeast = 8, kMost = 1000;
  std::uint32_t length_ = kMost / 4;
};

}  // namespace freehold::process
