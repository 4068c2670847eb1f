// SPDX-License-Identifier: MIT
// A random generator that costs two or three nanoseconds; the measured operations take ten.
#pragma once
#include <cstdint>

namespace freehold::cli::timers {

// splitmix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) noexcept : state_(seed) {}

  constexpr std::uint64_t next() noexcept {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }

 private:
  std::uint64_t state_;
};

// 32 random bits as one of 0 … n-1.
[[nodiscard]] constexpr std::uint64_t below(std::uint64_t random_bits, std::uint64_t n) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(Wide{random_bits & 0xffffffff} * n >> 32);
}

}  // namespace freehold::cli::timers
