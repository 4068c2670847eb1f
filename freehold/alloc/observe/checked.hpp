// SPDX-License-Identifier: MIT
// The engine in checked mode (FREEHOLD_CHECK=1; freehold/check): threads have no caches then, so every call takes the slow
// path, which comes here. Fast paths know nothing of it. Threads: any.
#pragma once
#include <cstddef>
#include <cstdint>

#include "freehold/check/block.hpp"

namespace freehold::alloc {

using check::Claim;
using check::Family;

// Returns whether calls are checked. Decided by the first call of the process; false before.
[[nodiscard]] bool is_checked() noexcept;

// As allocate() and allocate_aligned(), of a family. `alignment`: 0 where the program named none.
[[nodiscard]] void* allocate_as(Family family, std::size_t bytes, std::size_t alignment = 0) noexcept;
// As allocate_as(), of no scope and no count: for a private heap.
[[nodiscard]] void* allocate_checked_block(Family family, std::size_t bytes, std::size_t alignment) noexcept;
// As deallocate(), with what the program says about the block. Where nothing is checked, a size is compared with the block's
// if that can be had for nothing.
void deallocate_as(void* block, const Claim& claim) noexcept;
// The same in checked mode. Returns whether the block was freed; false after a report.
[[nodiscard]] bool deallocate_looked_at(void* block, const Claim& claim) noexcept;
// In checked mode: writes how many blocks are wanted, of how many bytes, and the stacks that allocated most of them. Their
// source may not be the caller of is_wanted().
void report_blocks(const char* what, bool (*is_wanted)(const void* context, const void* block) noexcept,
                   const void* context) noexcept;
// Looks at all blocks and reports those that are damaged. Returns how many; 0 if nothing is checked.
std::size_t check_all() noexcept;

}  // namespace freehold::alloc
