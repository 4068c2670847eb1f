// SPDX-License-Identifier: MIT
// The page of freehold scale: cli/report/scale.html and scale.js within the frame that all pages share.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/report/page.hpp"
#include "lab/assets.hpp"

namespace freehold::cli::scale {

// `results` is made by results_json().
[[nodiscard]] inline std::string page_of(const nlohmann::ordered_json& results) {
  return cli::page_of({.title = "Freehold: the scaling experiment",
                       .brand = "Freehold · scaling experiment",
                       .question = "Do threads scale like processes?",
                       .sections = assets::scale_html,
                       .script = assets::scale_js},
                      results);
}

}  // namespace freehold::cli::scale
