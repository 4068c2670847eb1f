// SPDX-License-Identifier: MIT
// The page of freehold timers: cli/report/timers.html and timers.js within the frame that all pages share.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/report/page.hpp"
#include "lab/assets.hpp"

namespace freehold::cli::timers {

// `results` is made by results_json().
[[nodiscard]] inline std::string page_of(const nlohmann::ordered_json& results) {
  return cli::page_of({.title = "Freehold: the timers",
                       .brand = "Freehold · timers",
                       .question = "How much do timers cost, and which threads contend for them?",
                       .sections = assets::timers_html,
                       .script = assets::timers_js},
                      results);
}

}  // namespace freehold::cli::timers
