// SPDX-License-Identifier: MIT
// operator new and delete as a pool: the reference S1 of "Memory management, pools compared". It measures the malloc
// that the program runs on, a preloaded one included.
// The capacity is no bound: to count what is handed out would add a shared line to every operation, and what is compared
// would not be the system's malloc any more. Misuse is seen by that malloc, if at all.
// Any thread. Cost, progress, bookkeeping: the malloc's.
#pragma once
#include <cstddef>
#include <new>

#include "freehold/base/bits.hpp"
#include "freehold/pool/concept.hpp"

namespace freehold::pool {

// The capacity of a pool that only memory limits.
inline constexpr std::size_t kNoLimit = ~std::size_t{0};

template <class Contention>
class SystemNewPool {
 public:
  explicit SystemNewPool(const PoolShape& shape)
      : bytes_(base::align_up(shape.slot_bytes, shape.alignment)), alignment_(shape.alignment) {}

  [[nodiscard]] void* acquire() noexcept {
    contention_.operated();
    if (alignment_ > __STDCPP_DEFAULT_NEW_ALIGNMENT__)
      return ::operator new(bytes_, std::align_val_t{alignment_}, std::nothrow);
    return ::operator new(bytes_, std::nothrow);
  }

  void release(void* slot) noexcept {
    contention_.operated();
    if (alignment_ > __STDCPP_DEFAULT_NEW_ALIGNMENT__) return ::operator delete(slot, bytes_, std::align_val_t{alignment_});
    ::operator delete(slot, bytes_);
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return kNoLimit; }
  [[nodiscard]] sync::Contention contention() const noexcept { return contention_.total(); }

 private:
  // Written by the constructor only.
  std::size_t bytes_;
  std::size_t alignment_;
  // Any thread.
  [[no_unique_address]] Contention contention_;
};

struct SystemNew {
  static constexpr std::string_view kName = "system-new";
  static constexpr bool kFindsLast = true;
  static constexpr bool kBounded = false;
  static constexpr NoOrders kOrders{};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, NoOrders O = kOrders>
  using Pool = SystemNewPool<Contention>;
};

}  // namespace freehold::pool
