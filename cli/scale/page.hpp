// The page of the scaling experiment.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace freehold::cli::scale {

// `results` as made by results_json.
[[nodiscard]] std::string page_of(const nlohmann::ordered_json& results);

}  // namespace freehold::cli::scale
