// SPDX-License-Identifier: MIT
#include "freehold/alloc/engine.hpp"
#include "freehold/alloc/observe/checked.hpp"
#include "freehold/heap/slab_source.hpp"

namespace freehold::heap {

constinit const BlockChecks kEngineChecks{
    &alloc::allocate_as,
    &alloc::deallocate_looked_at,
    &alloc::usable_size,
    [](OwnedBlocks& blocks, const void* block, std::size_t bytes) noexcept { return blocks.add(block, bytes); },
    [](OwnedBlocks& blocks, const void* block) noexcept { return blocks.remove(block); },
    [](OwnedBlocks& blocks) noexcept { return blocks.remove_any(); },
    [](const OwnedBlocks& blocks, const void* block) noexcept { return blocks.has(block); }};

}  // namespace freehold::heap
