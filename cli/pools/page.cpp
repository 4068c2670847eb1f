#include "cli/pools/page.hpp"

#include <nlohmann/json.hpp>

#include "cli/report/assets.hpp"
#include "cli/report/page.hpp"

namespace freehold::cli::pools {

std::string page_of(const nlohmann::ordered_json& results) {
  return cli::page_of({.title = "Freehold: the pools",
                       .brand = "Freehold · pools of fixed-size slots",
                       .question = "Which pool is the fastest, and where?",
                       .sections = assets::pools_html,
                       .script = assets::pools_js},
                      results);
}

}  // namespace freehold::cli::pools
