// SPDX-License-Identifier: MIT
// The operations on pools that the program and the plugin both have, each compiled into itself.
#pragma once
#include <array>
#include <cstddef>

#include "lab/strategies/registry.hpp"

namespace freehold::test {

inline constexpr std::size_t kSlotBytes = 64;

struct PoolCalls {
  void* (*make)(std::size_t slots);
  void (*end)(void* pool);
  void* (*acquire)(void* pool);
  void (*release)(void* pool, void* slot);
};
using PoolSide = std::array<PoolCalls, pool::Strategies::kCount>;

namespace {  // each side has its own

template <class S>
[[nodiscard]] PoolCalls pool_calls() {
  using P = pool::NativePool<S>;
  return {[](std::size_t slots) -> void* { return new P({.slots = slots, .slot_bytes = kSlotBytes}); },
          [](void* p) { delete static_cast<P*>(p); }, [](void* p) { return static_cast<P*>(p)->acquire(); },
          [](void* p, void* slot) { static_cast<P*>(p)->release(slot); }};
}

[[nodiscard, maybe_unused]] PoolSide this_pool_side() {
  PoolSide side{};
  std::size_t i = 0;
  pool::for_each_strategy([&]<class S>() { side[i++] = pool_calls<S>(); });
  return side;
}

}  // namespace
}  // namespace freehold::test
