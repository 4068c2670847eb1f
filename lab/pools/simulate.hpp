// SPDX-License-Identifier: MIT
// Counts the coherence misses of the strategies on 1 to 256 simulated cores (sim/coherence.hpp), which shows contention that
// a small machine cannot have. The figures are the same on every machine.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/pools/job.hpp"
#include "tools/support/interrupts.hpp"

namespace freehold::lab::pools {

inline constexpr std::array kSimulatedCores{1u, 2u, 4u, 8u, 16u, 32u, 64u, 128u, 256u};
// Accesses to memory after which the next core goes on: in step, as cores that take turns now and then, nearly alone.
inline constexpr std::array kSimulatedQuanta{1u, 16u, 256u};
// own: each core releases its own slots; exchange: the next core does; one-way: only every second core acquires, and the
// next one releases; each core acquires 256 and then releases them. In the last two, caches must refill and overflow.
inline constexpr std::array<std::string_view, 4> kSimulatedWorkloads{"own", "exchange", "one-way", "long"};
// The quanta that a workload runs with. The last two are as many accesses as the other two together: one is enough.
[[nodiscard]] constexpr std::span<const std::uint32_t> quanta_of(std::string_view workload) noexcept {
  const std::span<const std::uint32_t> all(kSimulatedQuanta);
  return workload == "own" || workload == "exchange" ? all : all.subspan(1, 1);
}

// Misses per pair of acquire and release, for each number of cores.
struct Simulated {
  std::string pool;
  std::string_view workload;
  std::uint32_t quantum = 0;
  std::vector<double> misses;
};

// All strategies among `pools`: the counter cannot look into libraries. Ends early at an interrupt.
[[nodiscard]] std::vector<Simulated> simulate(const std::vector<const Candidate*>& pools, Interrupts& interrupts,
                                              Progress& progress);

}  // namespace freehold::lab::pools
