// The page of freehold articles.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace freehold::cli::articles {

// Of results_json().
[[nodiscard]] std::string page_of(const nlohmann::ordered_json& results);

}  // namespace freehold::cli::articles
