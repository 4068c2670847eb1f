// SPDX-License-Identifier: MIT
// The result of a step of giving memory back: whether there is more to do, and when.
#pragma once
#include <cstdint>

namespace freehold::alloc {

enum class Due : std::uint8_t {
  kNothing,
  kLater,  // more will become due, or could not be given back
  kNow,    // the step met its bound
};

}  // namespace freehold::alloc
