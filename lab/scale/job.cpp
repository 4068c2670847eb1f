// SPDX-License-Identifier: MIT
#include "lab/scale/job.hpp"

#include "lab/scale/work_size.hpp"

namespace freehold::cli::scale {

std::uint64_t operations_of(const Job& job) {
  constexpr std::uint64_t kOfAUnit[] = {kComputeRounds, kListNodes, kMixedNodes,      kMemoryWords,
                                        kListNodes,     kListNodes, kIsolationBlocks, kHandoverBlocks};
  return job.iterations * job.units * kOfAUnit[static_cast<std::size_t>(job.test)];
}

std::string_view operation_name(Workload test) {
  constexpr std::string_view kNames[] = {"round", "node", "node", "word", "node", "node", "block", "block"};
  return kNames[static_cast<std::size_t>(test)];
}

}  // namespace freehold::cli::scale
