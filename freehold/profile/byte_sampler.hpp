// SPDX-License-Identifier: MIT
// Which of the bytes that a thread takes are sampled: points on a line of bytes, at distances that are exponentially
// distributed (a Poisson process), so that no pattern of sizes keeps in step with them. A block is sampled if a point lies
// in it, which for one of `bytes` bytes has the probability
//
//   p = 1 - exp(-bytes / mean)
//
// so that 1 / p blocks stand behind each sampled one: an estimate without bias, whatever the sizes are.
// No floating-point library: the shared library needs libc alone. A thread's own; 16 bytes, all zero at first.
#pragma once
#include <bit>
#include <cstdint>
#include <ctime>

#include "freehold/os/libc.hpp"

namespace freehold::profile {

// -ln(n / 2^32), of n > 0: 26 bits of the binary logarithm, one for each squaring.
[[nodiscard]] constexpr double negative_ln_of_fraction(std::uint32_t n) noexcept {
  constexpr double kLn2 = 0.693147180559945309;
  constexpr int kBits = 26;
  const int whole = std::bit_width(n) - 1;
  double rest = static_cast<double>(n) / static_cast<double>(std::uint64_t{1} << whole);  // 1 <= rest < 2
  double log2 = whole, bit = 1;
  for (int i = 0; i < kBits; ++i) {
    rest *= rest;
    bit /= 2;
    if (rest >= 2) {
      rest /= 2;
      log2 += bit;
    }
  }
  return (32 - log2) * kLn2;
}

// 1 - exp(-x), of x >= 0: a series for a thousandth of x, then ten doublings by 1 - (1 - y)^2 = y (2 - y), which lose
// nothing where x is small.
[[nodiscard]] constexpr double one_minus_exp(double x) noexcept {
  constexpr double kAlmostOne = 40;
  if (x >= kAlmostOne) return 1;
  const double t = x / 1024;
  double y = t * (1 - t / 2 * (1 - t / 3 * (1 - t / 4 * (1 - t / 5 * (1 - t / 6)))));
  for (int i = 0; i < 10; ++i) y *= 2 - y;
  return y;
}

// How many blocks of `bytes` bytes stand behind one that was sampled at a mean distance of `mean` bytes.
[[nodiscard]] constexpr double blocks_behind(std::uint64_t bytes, std::uint64_t mean) noexcept {
  return bytes == 0 || mean == 0 ? 1 : 1 / one_minus_exp(static_cast<double>(bytes) / static_cast<double>(mean));
}

class ByteSampler {
 public:
  constexpr ByteSampler() noexcept = default;

  // Passes over `count` blocks of `bytes` bytes each, and calls f(i) for each one that a point lies in. `mean` > 0.
  template <class F>
  void pass(std::uint64_t mean, std::uint64_t bytes, std::uint64_t count, F&& f) noexcept {
    follow(mean);
    if (until_ > bytes * count) [[likely]] {
      until_ -= bytes * count;
      return;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      if (until_ > bytes) {
        until_ -= bytes;
        continue;
      }
      until_ = distance(mean);  // from the block's end on: distances have no memory
      f(i);
    }
  }
  // Returns whether pass() would find nothing; then it has passed over them.
  [[nodiscard]] bool passes_freely(std::uint64_t mean, std::uint64_t bytes, std::uint64_t count) noexcept {
    follow(mean);
    if (until_ <= bytes * count) return false;
    until_ -= bytes * count;
    return true;
  }
  // Passes over one block. Whether it is sampled.
  [[nodiscard]] bool is_due(std::uint64_t mean, std::uint64_t bytes) noexcept {
    bool due = false;
    pass(mean, bytes, 1, [&](std::uint64_t) { due = true; });
    return due;
  }

  // True for one call in n, at random. n > 0.
  [[nodiscard]] bool is_one_in(std::uint64_t mean, std::uint32_t n) noexcept {
    follow(mean);
    return next() <= UINT32_MAX / n;
  }

 private:
  // Another mean than before: what is left of the last distance means nothing.
  void follow(std::uint64_t mean) noexcept {
    const auto stamp = static_cast<std::uint32_t>(mean ^ mean >> 32);
    if (random_ == 0 || stamp != stamp_) [[unlikely]]
      begin(mean, stamp);
  }
  // xorshift32 (Marsaglia 2003). Never 0.
  std::uint32_t next() noexcept {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 17;
    random_ ^= random_ << 5;
    return random_;
  }
  // Returns at least 1: the point lies in the last of so many bytes.
  [[nodiscard]] std::uint64_t distance(std::uint64_t mean) noexcept {
    return 1 + static_cast<std::uint64_t>(negative_ln_of_fraction(next()) * static_cast<double>(mean));
  }
  [[gnu::cold, gnu::noinline]] void begin(std::uint64_t mean, std::uint32_t stamp) noexcept {
    stamp_ = stamp;
    if (random_ == 0) {
      timespec now{};
      os::Libc::clock_gettime(CLOCK_MONOTONIC, &now);
      // Threads that begin at the same time differ in where this is, runs of the program in both.
      const auto here = reinterpret_cast<std::uintptr_t>(this);
      random_ =
          static_cast<std::uint32_t>((here >> 4 ^ static_cast<std::uint64_t>(now.tv_nsec)) * 0x9E37'79B9'7F4A'7C15 >> 32) |
          1;
    }
    until_ = distance(mean);
  }

  std::uint64_t until_ = 0;   // bytes, the one that the next point lies in included
  std::uint32_t random_ = 0;  // 0: not begun
  std::uint32_t stamp_ = 0;   // stamp of the mean distance that until_ was drawn for
};
static_assert(sizeof(ByteSampler) == 16);

}  // namespace freehold::profile
