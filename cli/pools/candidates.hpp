// Everything that is measured: the strategies of the registry, pools of libraries, and the baseline below which nobody gets.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cli/pools/job.hpp"

namespace freehold::cli::pools {

enum class Kind : std::uint8_t {
  kStrategy,  // of freehold/pool/registry.hpp
  kLibrary,   // somebody else's
  kUnlocked,  // ours or somebody else's, for one thread at a time
  kBaseline,  // not a pool: what the least that any pool must do costs
};

struct Candidate {
  std::string name;
  std::string source;
  Kind kind = Kind::kStrategy;
  bool distributed = false;  // over as many pools as a job says
  Report (*run)(const Job&) = nullptr;
};

// In the order of the tables.
[[nodiscard]] const std::vector<Candidate>& candidates();
// Whether it is not asked for what it does not have: the baseline, and pools for one thread.
[[nodiscard]] bool runs(const Candidate& candidate, Trial test, Context context, std::uint32_t threads);

}  // namespace freehold::cli::pools
