// SPDX-License-Identifier: MIT
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
#include "freehold/base/stepped_sizes.hpp"

namespace freehold::heap {

template <std::size_t MaxBytes>
struct HeapClasses {
  static_assert(std::has_single_bit(MaxBytes) && MaxBytes >= 128);
  static constexpr std::size_t kGranule = 8, kFineBytes = 128, kMaxBytes = MaxBytes;
  using Sizes = base::SteppedSizes<kGranule, kFineBytes, MaxBytes>;
  static constexpr std::size_t kMaxAlignment = 256 < MaxBytes ? 256 : MaxBytes;
  static constexpr unsigned kCount = Sizes::kCount;

  // The smallest class whose slots hold `bytes` and are aligned. Pre: bytes <= kMaxBytes, alignment <= kMaxAlignment.
  [[nodiscard]] static constexpr unsigned class_of(std::size_t bytes, std::size_t alignment) noexcept {
    if (alignment < kGranule) alignment = kGranule;
    bytes = base::align_up(bytes == 0 ? 1 : bytes, alignment);
    if (bytes <= kFineBytes) return Sizes::fine_number_of(bytes);
    // Aligned, too: slots and alignments are multiples of the step here, or of a power of two above it, of which the
    // smallest slot that holds a multiple is that multiple itself.
    return Sizes::coarse_number_of(bytes);
  }
  [[nodiscard]] static constexpr std::size_t slot_bytes(unsigned c) noexcept { return Sizes::bytes_of(c); }
};
static_assert(HeapClasses<16384>::kCount == 72 && HeapClasses<16384>::slot_bytes(71) == 16384);

}  // namespace freehold::heap
