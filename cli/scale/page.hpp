// The results as one HTML page that needs nothing else: style, script, plot library and data are inside it.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace freehold::cli::scale {

// `results` as made by results_json.
[[nodiscard]] std::string page_of(const nlohmann::ordered_json& results);
// JSON that may stand inside a script element: no name in it can end the element or open a comment.
[[nodiscard]] std::string json_for_script(const nlohmann::ordered_json& json);

}  // namespace freehold::cli::scale
