// The size classes of private heaps: every multiple of 8 bytes up to 128, then eight a doubling. Finer than malloc's, since
// a heap knows its users' alignment: a map's node of 40 bytes takes 40.
//
//   Invariant: slots of class c lie at multiples of slot_bytes(c) from a multiple of kMaxAlignment, so they are aligned to
//              every power of two that divides slot_bytes(c) and is at most kMaxAlignment.
//
// Constant expressions; where the size is known to the compiler, the class is a constant.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"

namespace freehold::heap {

template <std::size_t MaxBytes>
struct HeapClasses {
  static_assert(std::has_single_bit(MaxBytes) && MaxBytes >= 128);
  static constexpr std::size_t kGranule = 8, kFineBytes = 128, kMaxBytes = MaxBytes;
  static constexpr std::size_t kMaxAlignment = 256 < MaxBytes ? 256 : MaxBytes;
  static constexpr unsigned kFine = kFineBytes / kGranule, kPerDoubling = 8;
  static constexpr unsigned kCount = kFine + kPerDoubling * (std::bit_width(MaxBytes) - std::bit_width(kFineBytes));

  // The smallest class whose slots hold `bytes` and are aligned. Pre: bytes <= kMaxBytes, alignment <= kMaxAlignment.
  [[nodiscard]] static constexpr unsigned class_of(std::size_t bytes, std::size_t alignment) noexcept {
    if (alignment < kGranule) alignment = kGranule;
    bytes = base::align_up(bytes == 0 ? 1 : bytes, alignment);
    if (bytes <= kFineBytes) return static_cast<unsigned>(bytes / kGranule) - 1;
    unsigned c = coarse_class_of(bytes);
    while (slot_bytes(c) % alignment != 0) ++c;  // ends at a power of two
    return c;
  }
  [[nodiscard]] static constexpr std::size_t slot_bytes(unsigned c) noexcept {
    if (c < kFine) return (c + 1) * kGranule;
    const unsigned doubling = (c - kFine) / kPerDoubling, step = (c - kFine) % kPerDoubling + 1;
    return (kFineBytes << doubling) + step * (kFineBytes / kPerDoubling << doubling);
  }

 private:
  [[nodiscard]] static constexpr unsigned coarse_class_of(std::size_t bytes) noexcept {
    const std::size_t last = bytes - 1;
    const unsigned doubling = static_cast<unsigned>(std::bit_width(last) - std::bit_width(kFineBytes));
    const std::size_t step = (last >> (std::bit_width(kFineBytes / kPerDoubling) - 1 + doubling)) - kPerDoubling;
    return kFine + doubling * kPerDoubling + static_cast<unsigned>(step);
  }
};
static_assert(HeapClasses<16384>::kCount == 72 && HeapClasses<16384>::slot_bytes(71) == 16384);

}  // namespace freehold::heap
