// SPDX-License-Identifier: MIT
// The blocks whose allocation was sampled: a table of their addresses, with one place for each hash, and a filter of one bit
// for each line of places. The filter is small enough to leave the first cache to the program, and spares the free of any
// other block the look into the table.
//
//   Invariant: at rest a bit of the filter is set while its line holds a block. Who takes a place sets the bit after that; who
//   gives one up and finds the line empty clears the bit, and looks again after that. Whichever of the two comes last sees
//   the other's place, and sets it. Until then, some nanoseconds, a block may have no bit: an end that comes in them is lost.
//
// Bounded: a block that finds its place taken is not kept. Any thread, no lock. Cost of a block that is not in it: a hash
// and a load. Model: tests/model/sampled_blocks_model.cpp.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"

namespace freehold::doctor::probe {

[[nodiscard]] inline std::uint64_t mix(std::uint64_t value) noexcept { return value * 0x9e3779b97f4a7c15U; }

// Zero-initialised: usable before any constructor ran.
template <class A, unsigned kPlaceBits, unsigned kLineBits>
class SampledBlocks {
 public:
  [[nodiscard]] bool may_have(const void* block) const noexcept {
    const std::size_t line = place_of(block) >> kLineBits;
    // relaxed: the block's own way from the thread that allocated it to the one that frees it orders this
    return (filter_[line / 64].load(std::memory_order_relaxed) >> line % 64 & 1) != 0;
  }
  // Returns whether it is in now; it may have been in already, if its end was not seen.
  bool insert(const void* block) noexcept {
    std::uintptr_t none = 0;
    const std::size_t place = place_of(block), line = place >> kLineBits;
    if (!table_[place].compare_exchange_strong(none, address_of(block))) return none == address_of(block);
    filter_[line / 64].fetch_or(base::bit(line % 64));
    return true;
  }
  [[nodiscard]] bool has(const void* block) const noexcept {
    return table_[place_of(block)].load(std::memory_order_relaxed) == address_of(block);  // relaxed: as above
  }
  // Pre: has(block).
  void remove(const void* block) noexcept {
    const std::size_t place = place_of(block), line = place >> kLineBits;
    table_[place].store(0);
    if (!is_empty(line)) return;
    filter_[line / 64].fetch_and(~base::bit(line % 64));
    if (!is_empty(line)) filter_[line / 64].fetch_or(base::bit(line % 64));
  }

  // From now on may_have() says yes of every block: where all are recorded, none needs a place.
  void suspect_all() noexcept {
    for (auto& word : filter_) word.store(~std::uint64_t{0});
  }

  [[nodiscard]] static std::size_t place_of(const void* block) noexcept {
    return mix(address_of(block) >> 4) >> (64 - kPlaceBits);
  }

 private:
  static constexpr std::size_t kLines = std::size_t{1} << (kPlaceBits - kLineBits);

  [[nodiscard]] static std::uintptr_t address_of(const void* block) noexcept {
    return reinterpret_cast<std::uintptr_t>(block);
  }
  [[nodiscard]] bool is_empty(std::size_t line) const noexcept {
    for (std::size_t i = 0; i < std::size_t{1} << kLineBits; ++i)
      if (table_[(line << kLineBits) + i].load() != 0) return false;
    return true;
  }

  alignas(64) typename A::template atomic<std::uintptr_t> table_[std::size_t{1} << kPlaceBits];
  alignas(64) typename A::template atomic<std::uint64_t> filter_[(kLines + 63) / 64];
};

}  // namespace freehold::doctor::probe
