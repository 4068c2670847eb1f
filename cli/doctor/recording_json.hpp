// SPDX-License-Identifier: MIT
// A recording, as a part of the JSON of a diagnosis.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "cli/doctor/results_json.hpp"
#include "freehold/doctor/analysis/attribution.hpp"

namespace freehold::cli::doctor {

[[nodiscard]] nlohmann::ordered_json recording_json(const freehold::doctor::Attribution& recorded, const Limits& limits);

}  // namespace freehold::cli::doctor
