// SPDX-License-Identifier: MIT
// The candidates of `freehold pools`: the strategies of the registry, pools of other libraries, and the baseline, which is
// the least work that any pool must do.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "lab/pools/job.hpp"

namespace freehold::cli::pools {

enum class Kind : std::uint8_t {
  kStrategy,  // of lab/strategies/registry.hpp
  kLibrary,   // of another library
  kUnlocked,  // of either, for one thread at a time
  kBaseline,  // not a pool: the cost of the least work that any pool must do
};
inline constexpr Names<Kind, 4> kKinds{{"strategy", "library", "unlocked", "baseline"}};
[[nodiscard]] constexpr const auto& names_of(Kind) { return kKinds; }

struct Candidate {
  std::string name;
  std::string source;
  Kind kind = Kind::kStrategy;
  bool distributed = false;  // over as many pools as a job says
  Report (*run)(const Job&) = nullptr;
};

// In the order of the tables.
[[nodiscard]] const std::vector<Candidate>& candidates();
// Whether the candidate takes part in a row. The baseline and the pools for one thread have limits.
[[nodiscard]] bool runs(const Candidate& candidate, Trial test, Context context, std::uint32_t threads);

}  // namespace freehold::cli::pools
