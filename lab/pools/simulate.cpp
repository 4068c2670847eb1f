// SPDX-License-Identifier: MIT
#include "lab/pools/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lab/strategies/registry.hpp"
#include "sim/coherence.hpp"

namespace freehold::lab::pools {
namespace {

constexpr std::size_t kSlotBytes = 16;

sim::CoherenceOptions options_for(std::string_view workload, unsigned cores, unsigned quantum) {
  sim::CoherenceOptions options{.cores = cores, .quantum = quantum};
  if (workload == "exchange") options.workload = sim::Workload::kExchange;
  if (workload == "one-way") {
    options.workload = sim::Workload::kOneWay;
    options.warm_up = 256;  // several batches each way
    options.pairs = 512;
  }
  if (workload == "long") {
    options.held = 256;
    options.warm_up = 2 * options.held;
    options.pairs = 4 * options.held;
  }
  return options;
}

// None if the counter sees nothing, because another library manages the strategy's memory.
template <class S>
std::vector<Simulated> simulate_one() {
  std::vector<Simulated> all;
  std::uint64_t accesses = 0;
  for (const std::string_view workload : kSimulatedWorkloads) {
    for (const unsigned quantum : quanta_of(workload)) {
      Simulated one{std::string(S::kName), workload, quantum, {}};
      for (const unsigned cores : kSimulatedCores) {
        const sim::CoherenceOptions options = options_for(workload, cores, quantum);
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

std::vector<Simulated> simulate(const std::vector<const Candidate*>& pools, Interrupts& interrupts, Progress& progress) {
  std::vector<Simulated> all;
  std::size_t done = 0;
  pool::for_each_strategy([&]<class S> {
    if (interrupts.arrived() != 0 || std::ranges::find(pools, S::kName, &Candidate::name) == pools.end()) return;
    progress.show(done++, pool::Strategies::kCount, fmt::format("simulated cores, {}", S::kName));
    std::ranges::move(simulate_one<S>(), std::back_inserter(all));
  });
  return all;
}

}  // namespace freehold::lab::pools
