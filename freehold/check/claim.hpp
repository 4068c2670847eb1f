// SPDX-License-Identifier: MIT
// A program's claims about a block: when it asks for one, and when it frees it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace freehold::check {

// Names the functions by which a block was allocated, or is freed.
enum class Family : std::uint8_t { kMalloc, kNew, kNewArray, kAny, kHeap, kPool };

[[nodiscard]] constexpr const char* name_of(Family family) noexcept {
  constexpr const char* kNames[] = {"malloc", "new", "new[]", "any", "a private heap", "a pool"};
  return kNames[static_cast<unsigned>(family)];
}

// The program's request. `alignment`: 0 where it named none.
struct Request {
  std::size_t bytes = 0;
  std::size_t alignment = 0;
  Family family = Family::kMalloc;
};

// The program's claim about a block that it frees.
struct Claim {
  static constexpr std::size_t kUnsaid = ~std::size_t{0};
  Family family = Family::kMalloc;
  std::size_t bytes = kUnsaid;
  std::size_t alignment = kUnsaid;
};

}  // namespace freehold::check
