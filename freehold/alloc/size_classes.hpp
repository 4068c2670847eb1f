// SPDX-License-Identifier: MIT
// The size classes of malloc: every multiple of 16 bytes up to 128, then eight a doubling up to 32 KiB. Above 128 bytes at
// most 12.5% is added to a request. 72 classes; every slot is a multiple of 16.
//
//   SizeClass                a class; SizeClass{} means "not a slot"
//   SizeClasses              which class a request has, and how large its slots are
//   PerClass<T, kCount>      an array indexed by SizeClass
//
// class_of() is one load up to 1 KiB (ThreadCache::class_of_small) and about six instructions above.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>

#include "freehold/base/stepped_sizes.hpp"

namespace freehold::alloc {

// A number that cannot be taken for another: 1 … kCount - 1, or 0 for what is not a slot. Costs what the number costs.
class SizeClass {
 public:
  constexpr SizeClass() noexcept = default;
  constexpr explicit SizeClass(std::uint32_t index) noexcept : index_(index) {}
  [[nodiscard]] constexpr std::uint32_t index() const noexcept { return index_; }
  [[nodiscard]] constexpr bool is_slot() const noexcept { return index_ != 0; }
  constexpr SizeClass& operator++() noexcept {
    ++index_;
    return *this;
  }
  [[nodiscard]] friend constexpr auto operator<=>(SizeClass, SizeClass) noexcept = default;

 private:
  std::uint32_t index_ = 0;
};

// The classes of Classes (SizeClasses, or a test's own), for a loop over all of them.
template <class Classes>
struct AllClasses {
  struct Iterator {
    SizeClass c;
    constexpr SizeClass operator*() const noexcept { return c; }
    constexpr Iterator& operator++() noexcept {
      ++c;
      return *this;
    }
    friend constexpr bool operator==(Iterator, Iterator) noexcept = default;
  };
  [[nodiscard]] static constexpr Iterator begin() noexcept { return {SizeClass{1}}; }
  [[nodiscard]] static constexpr Iterator end() noexcept { return {SizeClass{static_cast<std::uint32_t>(Classes::kCount)}}; }
};

// One T for each class, and one for class 0.
template <class T, std::size_t kCount>
struct PerClass {
  T items[kCount]{};
  [[nodiscard]] constexpr T& operator[](SizeClass c) noexcept { return items[c.index()]; }
  [[nodiscard]] constexpr const T& operator[](SizeClass c) const noexcept { return items[c.index()]; }
};

struct SizeClasses {
  using Sizes = base::SteppedSizes<16, 128, 32 * 1024, 1>;
  static constexpr std::size_t kCount = Sizes::kCount + 1;  // class 0 included
  static constexpr std::size_t kMaxBytes = 32 * 1024;       // the largest slot
  static constexpr std::size_t kTableBytes = 1024;          // requests up to here are looked up

  // The class of a request; 1 <= bytes <= kMaxBytes.
  [[nodiscard]] static constexpr SizeClass class_of(std::size_t bytes) noexcept {
    return SizeClass{Sizes::number_of(bytes)};
  }
  // The slot size of a class but 0, in bytes.
  [[nodiscard]] static constexpr std::size_t slot_bytes(SizeClass c) noexcept { return Sizes::bytes_of(c.index()); }
  // The smallest class whose slots hold `bytes` and are all aligned to `alignment` (a power of two, at most kMaxBytes);
  // class 0: no such class. Slots start at multiples of their size from a span's start, so divisibility is enough.
  [[nodiscard]] static constexpr SizeClass aligned_class_of(std::size_t alignment, std::size_t bytes) noexcept {
    if (bytes > kMaxBytes) return {};
    for (SizeClass c = class_of(bytes < alignment ? alignment : bytes); c.index() < kCount; ++c)
      if (slot_bytes(c) % alignment == 0) return c;
    return {};
  }
};
static_assert(SizeClasses::kCount == 73);
static_assert(SizeClasses::slot_bytes(SizeClass{SizeClasses::kCount - 1}) == SizeClasses::kMaxBytes);

}  // namespace freehold::alloc
