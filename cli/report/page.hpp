// Results as one HTML page that needs nothing else: style, scripts, plot library and data are inside it.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace freehold::cli {

// `html` with what all pages share, `script`, and `json` for it to draw.
[[nodiscard]] std::string page_of(std::string_view html, std::string_view script, const nlohmann::ordered_json& json);
// JSON that may stand inside a script element: no name in it can end the element or open a comment.
[[nodiscard]] std::string json_for_script(const nlohmann::ordered_json& json);

}  // namespace freehold::cli
