// SPDX-License-Identifier: MIT
// Makes one HTML page from results. Style, scripts, plot library and data are inside it, so that it needs no other file.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace freehold::inline tools {

// The parts of one experiment's page. None of them comes from a user.
struct PageParts {
  std::string_view title;     // title of the window
  std::string_view brand;     // above the question
  std::string_view question;  // the page's heading
  std::string_view sections;  // HTML
  std::string_view script;    // draws the sections from the data
};

// The parts in the frame that all pages share, with `json` as the data that the script draws.
[[nodiscard]] std::string page_of(const PageParts& parts, const nlohmann::ordered_json& json);
// JSON for the inside of a script element: no name in it can end the element or open a comment.
[[nodiscard]] std::string json_for_script(const nlohmann::ordered_json& json);

}  // namespace freehold::inline tools
