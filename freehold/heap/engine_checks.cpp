// SPDX-License-Identifier: MIT
#include "freehold/alloc/engine.hpp"
#include "freehold/alloc/observe/checked.hpp"
#include "freehold/check/settings.hpp"
#include "freehold/heap/slab_source.hpp"

namespace freehold::heap {

namespace {

// For heaps that have ended.
constinit OwnedBlocks g_orphans{&g_orphan_heap};

constinit const BlockChecks kChecks{
    &alloc::allocate_checked_block,
    &alloc::deallocate_looked_at,
    &alloc::usable_size,
    [](OwnedBlocks& blocks, const void* block, std::size_t bytes) noexcept { return blocks.add(block, bytes); },
    [](OwnedBlocks& blocks, const void* block) noexcept { return blocks.remove(block); },
    [](OwnedBlocks& blocks) noexcept { return blocks.remove_any(); },
    [](const OwnedBlocks& blocks, const void* block) noexcept { return blocks.has(block); },
    [](OwnedBlocks& blocks) noexcept { blocks.move_to(g_orphans); },
    [](const OwnedBlocks& blocks) noexcept {
      alloc::report_blocks(
          "release_all refused: blocks of plain code",
          [](const void* of, const void* block) noexcept { return static_cast<const OwnedBlocks*>(of)->has(block); },
          &blocks);
    }};

}  // namespace

constinit const alloc::HeapCalls kOrphanCalls{
    [](alloc::ScopedHeap&, std::size_t, std::size_t) noexcept -> void* { return nullptr; },
    [](alloc::ScopedHeap&, void* block) noexcept {
      if (g_orphans.remove(block) != 0) (void)alloc::deallocate_looked_at(block, {check::Family::kHeap});
    },
    [](const alloc::ScopedHeap&, const void* block) noexcept { return alloc::usable_size(block); },
    [](const alloc::ScopedHeap&, const void*, std::size_t) noexcept { return false; },
    nullptr,  // no thread keeps what checked mode looks at
    nullptr,
    nullptr};
constinit alloc::ScopedHeap g_orphan_heap{&kOrphanCalls, nullptr, nullptr};

const BlockChecks* engine_checks() noexcept { return check::settings().on ? &kChecks : nullptr; }

}  // namespace freehold::heap
