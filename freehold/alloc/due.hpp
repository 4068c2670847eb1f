// What is left after a step of giving memory back.
#pragma once
#include <cstdint>

namespace freehold::alloc {

enum class Due : std::uint8_t {
  kNothing,
  kLater,  // more will become due, or could not be given back
  kNow,    // the step met its bound
};

}  // namespace freehold::alloc
