// Coherence misses of the strategies on 1 to 256 simulated cores (sim/coherence.hpp): who gets into whose way is seen
// without having the cores. The figures are the same on every machine.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/pools/contenders.hpp"
#include "cli/support/interrupts.hpp"
#include "cli/support/progress.hpp"

namespace freehold::cli::pools {

inline constexpr std::array kSimulatedCores{1u, 2u, 4u, 8u, 16u, 32u, 64u, 128u, 256u};
// Accesses to memory after which the next core goes on: in step, as cores that take turns now and then, nearly alone.
inline constexpr std::array kSimulatedQuanta{1u, 16u, 256u};
// Each core releases what it acquired; or the next one does.
inline constexpr std::array<std::string_view, 2> kSimulatedWorkloads{"own", "exchange"};

// Misses per pair of acquire and release, for each number of cores.
struct Simulated {
  std::string pool;
  std::string_view workload;
  std::uint32_t quantum = 0;
  std::vector<double> misses;
};

// All strategies among `pools`: the counter cannot look into libraries. Ends early at an interrupt.
[[nodiscard]] std::vector<Simulated> simulate(const std::vector<const Contender*>& pools, Interrupts& interrupts,
                                              Progress& progress);

}  // namespace freehold::cli::pools
