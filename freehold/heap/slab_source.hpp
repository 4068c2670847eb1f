// Where a private heap's slabs come from.
//
//   S::take(bytes, alignment)        memory, or null if there is none; the alignment is a power of two from the slab's size
//   on S::give_back(block, alignment)   what take(…, alignment) returned S::is_from(block)                whether take() may
//   have returned it: for checked builds
//
// Any thread. EngineSlabs asks Freehold's engine, whose runs of pages are kept warm between one heap and the next.
#pragma once
#include <concepts>
#include <cstddef>
#include <new>

#include "freehold/alloc/engine.hpp"
#include "freehold/base/poison.hpp"

namespace freehold::heap {

template <class S>
concept SlabSource = requires(S& source, void* block, std::size_t bytes) {
  { source.take(bytes, bytes) } noexcept -> std::same_as<void*>;
  { source.give_back(block, bytes) } noexcept;
  { source.is_from(block) } noexcept -> std::same_as<bool>;
};

struct EngineSlabs {
  [[nodiscard]] static void* take(std::size_t bytes, std::size_t alignment) noexcept {
    // What AddressSanitizer has not seen allocated its search for leaks does not look into.
    if constexpr (base::kAddressSanitizer) return ::operator new(bytes, std::align_val_t{alignment}, std::nothrow);
    return alloc::allocate_aligned(alignment, bytes);
  }
  static void give_back(void* block, std::size_t alignment) noexcept {
    if constexpr (base::kAddressSanitizer) return ::operator delete(block, std::align_val_t{alignment});
    alloc::deallocate(block);
  }
  [[nodiscard]] static bool is_from(const void* block) noexcept {
    return base::kAddressSanitizer || alloc::usable_size(block) != 0;
  }
};
static_assert(SlabSource<EngineSlabs>);

}  // namespace freehold::heap
