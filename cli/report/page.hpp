// Results as one HTML page that needs nothing else: style, scripts, plot library and data are inside it.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace freehold::cli {

// What one experiment's page has of its own; none of it comes from a user.
struct PageParts {
  std::string_view title;     // of the window
  std::string_view brand;     // above the question
  std::string_view question;  // the page's heading
  std::string_view sections;  // HTML
  std::string_view script;    // draws the sections from the data
};

// The parts within what all pages share, and `json` for the script to draw.
[[nodiscard]] std::string page_of(const PageParts& parts, const nlohmann::ordered_json& json);
// JSON that may stand inside a script element: no name in it can end the element or open a comment.
[[nodiscard]] std::string json_for_script(const nlohmann::ordered_json& json);

}  // namespace freehold::cli
