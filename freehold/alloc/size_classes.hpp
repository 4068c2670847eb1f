// Size classes: 16-byte steps up to 128 bytes, then eight per doubling up to 32 KiB, so that above 128 bytes at most 12.5%
// of a request is added (11.1% of the slot wasted). Class 0 means "not a slot". 72 classes; every slot is a multiple of 16.
// constexpr tables; class_of() is one load up to 1 KiB and about six instructions above.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace freehold::alloc {

struct SizeClasses {
  static constexpr std::size_t kCount = 73;            // class 0 included
  static constexpr std::size_t kMaxBytes = 32 * 1024;  // the largest slot
  static constexpr std::size_t kTableBytes = 1024;     // requests up to here are looked up
  static constexpr unsigned kFineClasses = 8;          // 16, 32, … 128 bytes
  static constexpr unsigned kPerDoubling = 8;

  // The class of a request; 1 <= bytes <= kMaxBytes.
  [[nodiscard]] static constexpr unsigned class_of(std::size_t bytes) noexcept {
    const std::size_t last = bytes - 1;
    if (last < 128) return static_cast<unsigned>(last >> 4) + 1;
    const unsigned top = 63U - static_cast<unsigned>(std::countl_zero(last));  // 7 for 129..256
    return kFineClasses + (top - 7) * kPerDoubling + static_cast<unsigned>(last >> (top - 3)) - 7;
  }
  // The slot size of class 1 <= c < kCount, in bytes.
  [[nodiscard]] static constexpr std::size_t slot_bytes(unsigned c) noexcept {
    if (c <= kFineClasses) return std::size_t{16} * c;
    const unsigned k = (c - kFineClasses - 1) / kPerDoubling;
    const unsigned j = (c - kFineClasses - 1) % kPerDoubling + 1;
    return (std::size_t{16} << k) * (kPerDoubling + j);
  }
  // The smallest class whose slots hold `bytes` and are all aligned to `alignment` (a power of two, at most kMaxBytes);
  // 0 if there is none. Slots start at multiples of their size from a span start, so divisibility is enough.
  [[nodiscard]] static constexpr unsigned aligned_class_of(std::size_t alignment, std::size_t bytes) noexcept {
    if (bytes > kMaxBytes) return 0;
    for (unsigned c = class_of(bytes < alignment ? alignment : bytes); c < kCount; ++c)
      if (slot_bytes(c) % alignment == 0) return c;
    return 0;
  }
};
static_assert(SizeClasses::slot_bytes(SizeClasses::kCount - 1) == SizeClasses::kMaxBytes);

}  // namespace freehold::alloc
