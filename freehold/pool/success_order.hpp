// SPDX-License-Identifier: MIT
// The order with which a compare-exchange is compiled where its failure order is the stronger one. C++17 allows that pair;
// GCC 12 does not know it: it compiles the success as seq_cst, and warns (-Winvalid-memory-model) where it sees the
// constants. So the machine gets the weakest order that covers both. The simulator gets the algorithm's own.
#pragma once
#include <atomic>
#include <concepts>

#include "freehold/sync/atomics.hpp"

namespace freehold::pool {

template <sync::Atomics A>
[[nodiscard]] consteval std::memory_order success_order(std::memory_order success, std::memory_order failure) noexcept {
  if (!std::same_as<A, sync::NativeAtomics>) return success;
  if (failure == std::memory_order_seq_cst) return failure;
  if (failure == std::memory_order_relaxed) return success;
  if (success == std::memory_order_relaxed) return failure;
  return success == std::memory_order_release ? std::memory_order_acq_rel : success;
}

}  // namespace freehold::pool
