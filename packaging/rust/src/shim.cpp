// SPDX-License-Identifier: MIT
// The engine as C functions for the crate: malloc stays whatever it is. The alignment is a power of two, and the size is not
// 0, as GlobalAlloc promises. Errors: null. Threads: any.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "freehold/alloc/engine.hpp"
#include "freehold/alloc/front/fast_path.hpp"

namespace alloc = freehold::alloc;

namespace {
// What every block has.
constexpr std::size_t kAlignment = 16;

// A block stays where it is if the new size leaves at most half of it unused. Checked mode wants to know the size of each
// block.
bool may_stay(std::size_t usable, std::size_t bytes) noexcept {
  return !alloc::is_checked() && bytes <= usable && bytes >= usable / 2;
}
}  // namespace

extern "C" {

void* freehold_rust_allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (alignment <= kAlignment) [[likely]]
    return alloc::allocate_inline(bytes);
  return alloc::allocate_aligned(alignment, bytes);
}

void* freehold_rust_allocate_zeroed(std::size_t bytes, std::size_t alignment) noexcept {
  if (alignment <= kAlignment) [[likely]]
    return alloc::allocate_zeroed(bytes);
  void* const block = alloc::allocate_aligned(alignment, bytes);
  if (block != nullptr) alloc::clear(block, bytes);
  return block;
}

// What Rust says about the block is looked at where that is free, and in checked mode.
void freehold_rust_deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
  if (!alloc::push_inline(block, alloc::g_span_count)) [[unlikely]]
    alloc::deallocate_as(block, {alloc::Family::kMalloc, bytes, alignment});
}

// reallocate() keeps no alignment above 16, and looks at no size. In checked mode the block moves, so that what Rust says
// about the old one is looked at.
void* freehold_rust_reallocate(void* block, std::size_t old_bytes, std::size_t alignment, std::size_t bytes) noexcept {
  if (alignment <= kAlignment && !alloc::is_checked()) [[likely]]
    return alloc::reallocate(block, bytes);
  const std::size_t usable = alloc::usable_size(block);
  if (may_stay(usable, bytes)) return block;
  void* const moved = freehold_rust_allocate(bytes, alignment);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, block, std::min({old_bytes, bytes, usable}));  // not beyond the block, whatever Rust says
  alloc::deallocate_as(block, {alloc::Family::kMalloc, old_bytes, alignment});
  return moved;
}

std::size_t freehold_rust_usable_size(const void* block) noexcept { return alloc::usable_size(block); }
std::size_t freehold_rust_trim() noexcept { return alloc::trim(); }
std::size_t freehold_rust_idle() noexcept { return alloc::idle(); }
std::size_t freehold_rust_check_all() noexcept { return alloc::check_all(); }
std::size_t freehold_rust_set_limit(std::size_t bytes) noexcept { return alloc::set_limit(bytes); }

}  // extern "C"
