// SPDX-License-Identifier: MIT
// The page of freehold articles: cli/report/articles.html and articles.js within the frame that all pages share.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/report/page.hpp"
#include "lab/experiment/assets.hpp"

namespace freehold::cli::articles {

// `results` is made by results_json().
[[nodiscard]] inline std::string page_of(const nlohmann::ordered_json& results) {
  return cli::page_of({.title = "Freehold: the articles",
                       .brand = "Freehold · five articles, claim by claim",
                       .question = "Which claims of the articles hold on this machine?",
                       .sections = assets::articles_html,
                       .script = assets::articles_js},
                      results);
}

}  // namespace freehold::cli::articles
