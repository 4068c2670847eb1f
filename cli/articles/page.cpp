#include "cli/articles/page.hpp"

#include <nlohmann/json.hpp>

#include "cli/report/assets.hpp"
#include "cli/report/page.hpp"

namespace freehold::cli::articles {

std::string page_of(const nlohmann::ordered_json& results) {
  return cli::page_of({.title = "Freehold: the articles",
                       .brand = "Freehold · five articles, claim by claim",
                       .question = "What holds of the articles, on this machine?",
                       .sections = assets::articles_html,
                       .script = assets::articles_js},
                      results);
}

}  // namespace freehold::cli::articles
