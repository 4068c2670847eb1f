#include "cli/scale/page.hpp"

#include <nlohmann/json.hpp>

#include "cli/report/assets.hpp"
#include "cli/report/page.hpp"

namespace freehold::cli::scale {

std::string page_of(const nlohmann::ordered_json& results) {
  return cli::page_of({.title = "Freehold: the scaling experiment",
                       .brand = "Freehold · scaling experiment",
                       .question = "Do threads scale like processes?",
                       .sections = assets::scale_html,
                       .script = assets::scale_js},
                      results);
}

}  // namespace freehold::cli::scale
