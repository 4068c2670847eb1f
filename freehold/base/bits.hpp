// SPDX-License-Identifier: MIT
// Bit and alignment arithmetic, by the names the field uses. constexpr, no state.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

namespace freehold::base {

// The golden ratio of 2^32: the highest bits of its multiples lie far apart.
inline constexpr std::uint32_t kGoldenRatio = 0x9e37'79b9;

inline constexpr std::size_t kCacheLine = 64;  // bytes

[[nodiscard]] constexpr unsigned lowest_bit(std::uint64_t word) noexcept {
  return static_cast<unsigned>(std::countr_zero(word));
}
[[nodiscard]] constexpr std::uint64_t bit(unsigned i) noexcept { return std::uint64_t{1} << i; }
// A word whose `n` lowest bits are set, 0 <= n <= 64.
[[nodiscard]] constexpr std::uint64_t low_bits(unsigned n) noexcept { return n >= 64 ? ~std::uint64_t{0} : bit(n) - 1; }

// `alignment` is a power of two.
[[nodiscard]] constexpr std::size_t align_up(std::size_t n, std::size_t alignment) noexcept {
  return (n + alignment - 1) & ~(alignment - 1);
}
[[nodiscard]] constexpr std::size_t align_down(std::size_t n, std::size_t alignment) noexcept {
  return n & ~(alignment - 1);
}
[[nodiscard]] constexpr bool is_aligned(std::size_t n, std::size_t alignment) noexcept { return (n & (alignment - 1)) == 0; }
[[nodiscard]] constexpr std::size_t ceil_div(std::size_t n, std::size_t d) noexcept { return (n + d - 1) / d; }

}  // namespace freehold::base
