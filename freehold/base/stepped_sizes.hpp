// SPDX-License-Identifier: MIT
// The one formula of the size classes of malloc (alloc/size_classes.hpp) and of private heaps (heap/size_classes.hpp). Up to
// `FineBytes`, even steps of `Granule` bytes; then eight steps for each doubling up to `MaxBytes`. So above FineBytes at
// most an eighth is added to a request.
//
//   SteppedSizes<16, 128, 32768>: 16, 32, … 128, 144, 160, … 256, 288, … 32768; their numbers are 0, 1, … kCount - 1.
//
// Constant expressions: a few shifts, no table. Source: jemalloc's size classes, with eight steps instead of four.
#pragma once
#include <bit>
#include <cstddef>

namespace freehold::base {

// `First`: the number of the smallest size.
template <std::size_t Granule, std::size_t FineBytes, std::size_t MaxBytes, unsigned First = 0>
struct SteppedSizes {
  static_assert(std::has_single_bit(Granule) && std::has_single_bit(FineBytes) && std::has_single_bit(MaxBytes));
  static_assert(Granule <= FineBytes / 8 && FineBytes <= MaxBytes);

  static constexpr unsigned kPerDoubling = 8;
  static constexpr unsigned kFine = FineBytes / Granule;
  static constexpr unsigned kCount = kFine + kPerDoubling * (std::bit_width(MaxBytes) - std::bit_width(FineBytes));

  // The number of the smallest size that holds `bytes`. Pre: 1 <= bytes <= MaxBytes.
  [[nodiscard]] static constexpr unsigned number_of(std::size_t bytes) noexcept {
    return bytes - 1 < FineBytes ? fine_number_of(bytes) : coarse_number_of(bytes);
  }
  // The same for callers that know: bytes <= FineBytes.
  [[nodiscard]] static constexpr unsigned fine_number_of(std::size_t bytes) noexcept {
    return First + static_cast<unsigned>((bytes - 1) / Granule);
  }
  // The same for callers that know: bytes > FineBytes.
  [[nodiscard]] static constexpr unsigned coarse_number_of(std::size_t bytes) noexcept {
    const std::size_t last = bytes - 1;
    const unsigned top = static_cast<unsigned>(std::bit_width(last)) - 1;
    const auto step = static_cast<unsigned>(last >> (top - 3));  // 8 … 15
    return First + kFine + (top - kFineShift) * kPerDoubling + step - kPerDoubling;
  }
  // The size with this number, in bytes. Pre: First <= number < First + kCount.
  [[nodiscard]] static constexpr std::size_t bytes_of(unsigned number) noexcept {
    if (number < First + kFine) return (number + std::size_t{1} - First) * Granule;
    const unsigned doubling = (number - First - kFine) / kPerDoubling, step = (number - First - kFine) % kPerDoubling + 1;
    return (FineBytes / kPerDoubling << doubling) * (kPerDoubling + step);
  }

 private:
  static constexpr unsigned kFineShift = static_cast<unsigned>(std::bit_width(FineBytes)) - 1;
};

}  // namespace freehold::base
