// SPDX-License-Identifier: MIT
// Constants and a question that the tests of malloc's interfaces share.
#pragma once
#include <cstddef>
#include <cstdint>

#include "tests/support/c_api.hpp"
#include "tests/support/expected_malloc.hpp"
#include "tests/support/pattern.hpp"

namespace freehold::test::malloc_api {

inline constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;
// No allocator can grant these. The last is below PTRDIFF_MAX: only the address space says no.
inline constexpr std::size_t kImpossible[] = {SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX / 2 + 2, std::size_t{1} << 60};

inline bool is_aligned(const void* p, std::size_t alignment) { return reinterpret_cast<std::uintptr_t>(p) % alignment == 0; }

}  // namespace freehold::test::malloc_api
