// The page of the pools.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace freehold::cli::pools {

// `results` as made by results_json.
[[nodiscard]] std::string page_of(const nlohmann::ordered_json& results);

}  // namespace freehold::cli::pools
