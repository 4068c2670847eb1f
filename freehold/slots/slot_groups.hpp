// SPDX-License-Identifier: MIT
// From slot addresses to bits of words and back: group_slots() turns a batch of addresses into (word, bits) groups, which a
// drain gives back with one atomic each; list_slots() turns a word's bits into addresses for a refill.
//
// Neighbouring addresses of one word merge, so a batch freed in order becomes one or two groups. Two versions of the same
// arithmetic, in vectors (os/vectors.hpp: AVX2 or NEON, 4 addresses a step) and scalar; the first call picks by CPU. Pure:
// touches no slot. Index within a span: (offset * reciprocal) >> 32, exact for offsets below 64 KiB; a remainder, or an
// offset beyond the last whole slot, means that the address is not the start of a slot.
#pragma once
#include <cstddef>
#include <cstdint>

#include "freehold/slots/word_pool.hpp"

namespace freehold::pool {

// How slots of one class lie in memory.
struct SlotGeometry {
  std::uintptr_t base = 0;       // address of span 0
  std::uint32_t span_shift = 0;  // log2 of a span's bytes, at most 16
  std::uint32_t slot_bytes = 0;
  std::uint32_t reciprocal = 0;   // floor(2^32 / slot_bytes) + 1
  std::uint32_t last_offset = 0;  // where the span's last whole slot begins

  [[nodiscard]] static constexpr SlotGeometry of(std::uintptr_t base, unsigned span_shift,
                                                 std::uint32_t slot_bytes) noexcept {
    return {base, span_shift, slot_bytes, static_cast<std::uint32_t>((std::uint64_t{1} << 32) / slot_bytes) + 1,
            ((std::uint32_t{1} << span_shift) / slot_bytes - 1) * slot_bytes};
  }
  // The slot's number within its span; `offset` counts from the span's start.
  [[nodiscard]] constexpr std::uint32_t index(std::uint32_t offset) const noexcept {
    return static_cast<std::uint32_t>(std::uint64_t{offset} * reciprocal >> 32);
  }
  [[nodiscard]] constexpr std::uintptr_t address(WordIndex word, unsigned bit) const noexcept {
    return base + (std::uintptr_t{span_of(word)} << span_shift) + std::size_t{word_in_span(word) * 64 + bit} * slot_bytes;
  }
};

inline constexpr std::size_t kMaxBatch = 128;  // slots

// Slots of one word, without initial values: a batch needs a few of them, and clearing all costs more than filling those.
struct SlotGroup {
  WordIndex word;
  std::uint64_t bits;
};

struct SlotGroups {
  SlotGroups() noexcept {}  // words groups[] as it is

  std::size_t count = 0;
  std::uintptr_t misplaced = 0;  // an address that is not the start of a whole slot, left out; 0 if all are
  std::uintptr_t repeated = 0;   // an address that stands twice in one run, counted once; 0 if none does
  SlotGroup groups[kMaxBatch];
};

// Groups slots[0 .. n), n <= kMaxBatch. Cost: about 1.5 (vector) to 5 instructions a slot.
void group_slots(const SlotGeometry& geometry, void* const* slots, std::size_t n, SlotGroups& out) noexcept;

// Without vectors, for tests.
void group_slots_scalar(const SlotGeometry& geometry, void* const* slots, std::size_t n, SlotGroups& out) noexcept;

// Writes the addresses of the slots `taken` to out[0..popcount), the highest first: popped from the end, they come in
// ascending order. Returns their number.
std::size_t list_slots(const SlotGeometry& geometry, Taken taken, void** out) noexcept;

}  // namespace freehold::pool
