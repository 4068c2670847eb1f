// SPDX-License-Identifier: MIT
// Contents that show who wrote them: every byte of a block depends on the block's stamp and on its place, so that a block
// that overlaps another, was moved wrongly or was handed out twice does not read back as it was written.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace freehold::test {

namespace detail {
inline std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 31;
  x *= 0x9e3779b97f4a7c15u;
  return x ^ (x >> 29);
}
// Blocks above this are written and checked in the first and last bytes of every page only: tests are not about memcpy.
inline constexpr std::size_t kDenseBytes = 32 * 1024;
inline constexpr std::size_t kPage = 4096, kEdge = 32;

// Calls visit(offset, length) for the parts of a block that carry a pattern; stops and returns false if it does.
template <class Visit>
bool for_each_part(std::size_t bytes, Visit&& visit) {
  if (bytes <= kDenseBytes) return visit(std::size_t{0}, bytes);
  for (std::size_t at = 0; at + kEdge <= bytes; at += kPage)
    if (!visit(at, kEdge)) return false;
  return visit(bytes - kEdge, kEdge);
}
inline unsigned char byte_at(std::uint64_t stamp, std::size_t i) {
  return static_cast<unsigned char>(mix(stamp + (i >> 3)) >> (i & 7) * 8);
}
}  // namespace detail

inline void fill(void* block, std::size_t bytes, std::uint64_t stamp) {
  auto* p = static_cast<unsigned char*>(block);
  detail::for_each_part(bytes, [=](std::size_t at, std::size_t length) {
    std::size_t i = at;
    for (; (i & 7) == 0 && i + 8 <= at + length; i += 8) {
      const std::uint64_t word = detail::mix(stamp + (i >> 3));
      std::memcpy(p + i, &word, 8);
    }
    for (; i < at + length; ++i) p[i] = detail::byte_at(stamp, i);
    return true;
  });
}

// True if the first `bytes` bytes still read as fill(block, filled, stamp) left them; bytes <= filled.
inline bool intact(const void* block, std::size_t bytes, std::size_t filled, std::uint64_t stamp) {
  const auto* p = static_cast<const unsigned char*>(block);
  return detail::for_each_part(filled, [=](std::size_t at, std::size_t length) {
    for (std::size_t i = at; i < at + length && i < bytes; ++i)
      if (p[i] != detail::byte_at(stamp, i)) return false;
    return true;
  });
}
inline bool intact(const void* block, std::size_t bytes, std::uint64_t stamp) { return intact(block, bytes, bytes, stamp); }

inline bool all_zero(const void* block, std::size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(block);
  return bytes == 0 || (p[0] == 0 && std::memcmp(p, p + 1, bytes - 1) == 0);
}

// xorshift: fast, seeded, the same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(detail::mix(seed + 0x1234567) | 1) {}
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ * 0x2545f4914f6cdd1du;
  }
  // 0 … n - 1
  std::size_t below(std::size_t n) { return static_cast<std::size_t>((next() >> 32) * static_cast<std::uint64_t>(n) >> 32); }

 private:
  std::uint64_t state_;
};

}  // namespace freehold::test
