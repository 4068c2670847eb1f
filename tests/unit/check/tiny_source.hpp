// SPDX-License-Identifier: MIT
// A few raw blocks for CheckedBlocks: one class, and one large block at a time.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>

namespace freehold::check {

template <unsigned kSlots, std::size_t kSlotBytes = 256>
struct TinySource {
  struct Raw {
    void* start = nullptr;
    std::size_t bytes = 0;
    bool in_use = false;
  };
  static constexpr unsigned kClasses = 2;
  static constexpr std::size_t kPageBytes = 4096, kLargeBytes = 16 * kPageBytes;

  static unsigned class_of(std::size_t bytes, std::size_t alignment) {
    return bytes <= kSlotBytes && alignment <= kSlotBytes ? 1 : 0;
  }
  static std::size_t slot_bytes(unsigned) { return kSlotBytes; }
  unsigned class_at(const void* address) const {
    const auto* const p = static_cast<const char*>(address);
    const auto* const first = reinterpret_cast<const char*>(slots);
    return p >= first && p < first + sizeof slots ? 1 : 0;
  }
  std::size_t take(unsigned, void** out, std::size_t n) {
    std::size_t got = 0;
    for (unsigned i = 0; i < kSlots && got < n; ++i)
      if (!used[i]) used[i] = true, out[got++] = slots[i];
    return got;
  }
  void give(unsigned, void* const* in, std::size_t n) {
    for (std::size_t k = 0; k < n; ++k)
      used[(static_cast<char*>(in[k]) - reinterpret_cast<char*>(slots)) / kSlotBytes] = false;
  }
  void* allocate_large(std::size_t bytes, std::size_t, bool& zero) {
    if (large_used || bytes > kLargeBytes) return nullptr;
    large_used = true, zero = false;
    return large;
  }
  void free_large(void*) { large_used = false; }
  void* resize_large(void*, std::size_t) { return nullptr; }
  std::size_t large_bytes(const void*) const { return kLargeBytes; }
  void seal(void* pages, std::size_t bytes) { sealed += bytes, std::memset(pages, 0, bytes); }
  void unseal(void*, std::size_t bytes) { sealed -= bytes; }
  Raw find(const void* address) {
    const auto* const p = static_cast<const char*>(address);
    const auto* const first = reinterpret_cast<const char*>(slots);
    if (p >= first && p < first + sizeof slots) {
      const auto i = static_cast<unsigned>((p - first) / static_cast<std::ptrdiff_t>(kSlotBytes));
      return {slots[i], kSlotBytes, used[i]};
    }
    if (p >= large && p < large + kLargeBytes && large_used) return {large, kLargeBytes, true};
    return {};
  }
  template <class F>
  void for_each(F&& f) {
    for (unsigned i = 0; i < kSlots; ++i)
      if (used[i]) f(Raw{slots[i], kSlotBytes, true});
    if (large_used) f(Raw{large, kLargeBytes, true});
  }

  alignas(kSlotBytes) char slots[kSlots][kSlotBytes]{};
  alignas(kPageBytes) char large[kLargeBytes]{};
  bool used[kSlots]{};
  bool large_used = false;
  std::size_t sealed = 0;
};

}  // namespace freehold::check
