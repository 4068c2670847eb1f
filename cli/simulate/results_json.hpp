// Everything that was simulated, as JSON; docs/simulate.md lists the fields.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "cli/simulate/simulation.hpp"

namespace freehold::cli::simulate {

[[nodiscard]] nlohmann::ordered_json results_json(const Results& results);

}  // namespace freehold::cli::simulate
