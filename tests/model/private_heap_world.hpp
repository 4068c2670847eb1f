// SPDX-License-Identifier: MIT
// Private heaps of a few small slabs on the simulated machine, for their models.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "freehold/heap/size_classes.hpp"
#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"

namespace freehold::model {

// Slabs of 4 KiB, pages of 256 bytes, batches of two slots.
struct Tiny {
  static constexpr unsigned kPageShift = 8;
  using Classes = heap::HeapClasses<128>;
  static constexpr std::size_t kBatchBytes = 0, kMinBatch = 2, kMaxBatch = 2;
  static constexpr unsigned shards() noexcept { return 2; }
  // Threads find their shard by their number. Here that is the CPU on which they run, so that they meet, and move.
  template <class A>
  static std::uint32_t spread() noexcept {
    return A::cpu_id();
  }
  static constexpr std::uint32_t kLocksToOwn = 2;
  static constexpr unsigned kOwners = 2;
};
// Two slots to a page.
inline constexpr std::size_t kBytes = 112;

struct FewSlabs {
  static constexpr std::size_t kSlabs = 4, kSlabBytes = 4096;
  struct Memory {
    alignas(kSlabBytes) std::byte slabs[kSlabs][kSlabBytes];
    bool taken[kSlabs];
  };
  static Memory& memory() {
    static Memory memory;
    return memory;
  }
  static void* take(std::size_t bytes, std::size_t) noexcept {
    for (std::size_t i = 0; i < kSlabs; ++i) {
      if (memory().taken[i] || bytes > kSlabBytes) continue;
      memory().taken[i] = true;
      return memory().slabs[i];
    }
    return nullptr;
  }
  static void give_back(void* block, std::size_t) noexcept {
    SIM_CHECK(memory().taken[(static_cast<std::byte*>(block) - memory().slabs[0]) / kSlabBytes]);
    memory().taken[(static_cast<std::byte*>(block) - memory().slabs[0]) / kSlabBytes] = false;
  }
  static bool is_from(const void*) noexcept { return true; }
};

// Uses a block as its owner may. The first words are where the heap keeps its links.
inline void use(void* block) {
  auto* const payload = static_cast<sim::SimAtomics::var<std::uint64_t>*>(block);
  payload->store(payload->load() + 1);
}

inline void start_afresh() { std::memset(static_cast<void*>(&FewSlabs::memory()), 0, sizeof(FewSlabs::Memory)); }

}  // namespace freehold::model
