// SPDX-License-Identifier: MIT
// The engine's Atomics policy on the simulated cores: CoherentAtomics, and locks that report which core takes them.
#pragma once
#include <cstdint>

#include "freehold/sync/lock.hpp"
#include "sim/coherence.hpp"

namespace freehold::sim {

struct EngineAtomics : CoherentAtomics {};

}  // namespace freehold::sim

namespace freehold::sync {

// Counts as the native one does, and tells the cores that the running one took the lock, or sleeps for it.
template <>
class CountWaits<sim::EngineAtomics> {
 public:
  void taken() noexcept { sim::coherent::took_lock(this); }
  void waited() noexcept {
    waits_.fetch_add(1);
    sim::coherent::waited();
  }
  [[nodiscard]] std::uint32_t count() const noexcept { return waits_.load(); }

 private:
  sim::EngineAtomics::atomic<std::uint32_t> waits_{0};
};

}  // namespace freehold::sync
