#include "cli/pools/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "freehold/pool/registry.hpp"
#include "sim/coherence.hpp"

namespace freehold::cli::pools {
namespace {

constexpr std::size_t kSlotBytes = 16;

// None if the counter sees nothing: the strategy's memory is somebody else's.
template <class S>
std::vector<Simulated> simulate_one() {
  std::vector<Simulated> all;
  std::uint64_t accesses = 0;
  for (const sim::Workload workload : {sim::Workload::kOwnSlots, sim::Workload::kExchange}) {
    for (const unsigned quantum : kSimulatedQuanta) {
      Simulated one{std::string(S::kName), kSimulatedWorkloads[static_cast<std::size_t>(workload)], quantum, {}};
      for (const unsigned cores : kSimulatedCores) {
        const sim::CoherenceOptions options{.cores = cores, .quantum = quantum, .workload = workload};
        const pool::PoolShape shape{.slots = sim::coherence_slots(options), .slot_bytes = kSlotBytes, .shards = cores};
        const auto count = sim::coherence<typename S::template Pool<sim::CoherentAtomics>>(shape, options);
        one.misses.push_back(count.misses_per_pair());
        accesses += count.accesses;
      }
      all.push_back(std::move(one));
    }
  }
  if (accesses == 0) all.clear();
  return all;
}

}  // namespace

std::vector<Simulated> simulate(const std::vector<const Contender*>& pools, Interrupts& interrupts, Progress& progress) {
  std::vector<Simulated> all;
  std::size_t done = 0;
  pool::for_each_strategy([&]<class S> {
    if (interrupts.arrived() != 0 || std::ranges::find(pools, S::kName, &Contender::name) == pools.end()) return;
    progress.show(done++, pool::Strategies::kCount, fmt::format("simulated cores, {}", S::kName));
    std::ranges::move(simulate_one<S>(), std::back_inserter(all));
  });
  return all;
}

}  // namespace freehold::cli::pools
