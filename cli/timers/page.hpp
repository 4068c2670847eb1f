// The page of the timers.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace freehold::cli::timers {

// `results` as made by results_json.
[[nodiscard]] std::string page_of(const nlohmann::ordered_json& results);

}  // namespace freehold::cli::timers
