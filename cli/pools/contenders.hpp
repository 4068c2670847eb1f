// Everything that is measured: the strategies of the registry, pools of libraries, and the floor below which nobody gets.
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
  kFloor,     // not a pool: what the least that any pool must do costs
};

struct Contender {
  std::string name;
  std::string source;
  Kind kind = Kind::kStrategy;
  bool distributed = false;  // over as many pools as a job says
  Report (*run)(const Job&) = nullptr;
};

// In the order of the tables.
[[nodiscard]] const std::vector<Contender>& contenders();
// Null: there is none of this name.
[[nodiscard]] const Contender* find_contender(std::string_view name);
// Whether it is not asked for what it does not have: the floor, and pools for one thread.
[[nodiscard]] bool runs(const Contender& contender, Trial test, Context context, std::uint32_t threads);

}  // namespace freehold::cli::pools
