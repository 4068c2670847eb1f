// SPDX-License-Identifier: MIT
// The page of freehold pools: cli/report/pools.html and pools.js within the frame that all pages share.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/report/page.hpp"
#include "lab/experiment/assets.hpp"

namespace freehold::cli::pools {

// `results` is made by results_json().
[[nodiscard]] inline std::string page_of(const nlohmann::ordered_json& results) {
  return cli::page_of({.title = "Freehold: the pools",
                       .brand = "Freehold · pools of fixed-size slots",
                       .question = "Which pool is the fastest, and where?",
                       .sections = assets::pools_html,
                       .script = assets::pools_js},
                      results);
}

}  // namespace freehold::cli::pools
