// Where a private heap's slabs come from.
//
//   take(bytes, alignment)         memory, or null if there is none; the alignment is a power of two from the slab's size on
//   give_back(block, alignment)    what take(..., alignment) returned
//   is_from(block)                 whether take() may have returned it: for checked builds
//
// Any thread. EngineSlabs asks Freehold's engine, whose runs of pages are kept warm between one heap and the next. A program
// and a plugin may each have an engine of their own: a heap keeps to that of the shared object that made it, whoever calls.
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

class EngineSlabs {
 public:
  [[gnu::visibility("hidden")]] EngineSlabs() noexcept
      : take_(&take_here), give_back_(&give_back_here), is_from_(&is_from_here) {}

  [[nodiscard]] void* take(std::size_t bytes, std::size_t alignment) const noexcept { return take_(bytes, alignment); }
  void give_back(void* block, std::size_t alignment) const noexcept { give_back_(block, alignment); }
  [[nodiscard]] bool is_from(const void* block) const noexcept { return is_from_(block); }

 private:
  [[gnu::visibility("hidden")]] static void* take_here(std::size_t bytes, std::size_t alignment) noexcept {
    // What AddressSanitizer has not seen allocated its search for leaks does not look into.
    if constexpr (base::kAddressSanitizer) return ::operator new(bytes, std::align_val_t{alignment}, std::nothrow);
    return alloc::allocate_aligned(alignment, bytes);
  }
  [[gnu::visibility("hidden")]] static void give_back_here(void* block, std::size_t alignment) noexcept {
    if constexpr (base::kAddressSanitizer) return ::operator delete(block, std::align_val_t{alignment});
    alloc::deallocate(block);
  }
  [[gnu::visibility("hidden")]] static bool is_from_here(const void* block) noexcept {
    return base::kAddressSanitizer || alloc::usable_size(block) != 0;
  }

  void* (*take_)(std::size_t, std::size_t) noexcept;
  void (*give_back_)(void*, std::size_t) noexcept;
  bool (*is_from_)(const void*) noexcept;
};
static_assert(SlabSource<EngineSlabs>);

}  // namespace freehold::heap
