// SPDX-License-Identifier: MIT
// Vectors of four 64-bit elements: one source for AVX2 (a register), NEON (two) and processors without either. The
// compilers' vector types have the usual operators; here is what those lack or what they make worse code of. A function that
// uses them is declared FREEHOLD_IN_LANES; on x86-64 only a processor with has_lanes() may run it. Pure.
#pragma once
#include <cstdint>

#include "freehold/os/cpu.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#define FREEHOLD_IN_LANES [[gnu::target("avx2,popcnt")]]
#else
#if defined(__aarch64__)
#include <arm_neon.h>
#endif
#define FREEHOLD_IN_LANES
#endif

namespace freehold::os {

inline constexpr unsigned kLanes = 4;
using Lanes [[gnu::vector_size(32)]] = std::uint64_t;
using UnalignedLanes [[gnu::vector_size(32), gnu::aligned(8), gnu::may_alias]] = std::uint64_t;
using LaneMask [[gnu::vector_size(32)]] = std::int64_t;  // each lane has all bits or none

#if defined(__x86_64__)

[[nodiscard]] inline bool has_lanes() noexcept { return has_avx2(); }
// The product of the lower halves, which is 64 bits.
[[nodiscard]] FREEHOLD_IN_LANES inline Lanes product_of_halves(const Lanes& a, const Lanes& b) noexcept {
  return reinterpret_cast<Lanes>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
[[nodiscard]] FREEHOLD_IN_LANES inline bool all_set(const LaneMask& mask) noexcept {
  return _mm256_movemask_epi8(reinterpret_cast<__m256i>(mask)) == -1;
}
[[nodiscard]] FREEHOLD_IN_LANES inline bool none_set(const LaneMask& mask) noexcept {
  return _mm256_movemask_epi8(reinterpret_cast<__m256i>(mask)) == 0;
}

#else

[[nodiscard]] constexpr bool has_lanes() noexcept {
#if defined(__aarch64__)
  return true;  // part of the architecture
#else
  return false;
#endif
}
[[nodiscard]] inline Lanes product_of_halves(const Lanes& a, const Lanes& b) noexcept {
#if defined(__aarch64__)
  const auto half = [](std::uint64_t x0, std::uint64_t x1, std::uint64_t y0, std::uint64_t y1) {
    return vmull_u32(vmovn_u64(uint64x2_t{x0, x1}), vmovn_u64(uint64x2_t{y0, y1}));
  };
  const uint64x2_t low = half(a[0], a[1], b[0], b[1]), high = half(a[2], a[3], b[2], b[3]);
  return Lanes{low[0], low[1], high[0], high[1]};
#else
  return (a & 0xffffffff) * (b & 0xffffffff);
#endif
}
[[nodiscard]] inline bool all_set(const LaneMask& mask) noexcept { return (mask[0] & mask[1] & mask[2] & mask[3]) == -1; }
[[nodiscard]] inline bool none_set(const LaneMask& mask) noexcept { return (mask[0] | mask[1] | mask[2] | mask[3]) == 0; }

#endif

// The last element of `before`, then all of `lanes` but their last.
[[nodiscard]] FREEHOLD_IN_LANES inline Lanes shifted_in(const Lanes& before, const Lanes& lanes) noexcept {
  return __builtin_shufflevector(before, lanes, 3, 4, 5, 6);
}
// Writes (a, b) of each lane, two elements side by side, to 64 bytes.
FREEHOLD_IN_LANES inline void store_pairs(void* to, const Lanes& a, const Lanes& b) noexcept {
  UnalignedLanes* const out = static_cast<UnalignedLanes*>(to);
  out[0] = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  out[1] = __builtin_shufflevector(a, b, 2, 6, 3, 7);
}

}  // namespace freehold::os
