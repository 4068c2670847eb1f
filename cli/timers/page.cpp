#include "cli/timers/page.hpp"

#include <nlohmann/json.hpp>

#include "cli/report/assets.hpp"
#include "cli/report/page.hpp"

namespace freehold::cli::timers {

std::string page_of(const nlohmann::ordered_json& results) {
  return cli::page_of({.title = "Freehold: the timers",
                       .brand = "Freehold · timers",
                       .question = "What do timers cost, and who contends for them?",
                       .sections = assets::timers_html,
                       .script = assets::timers_js},
                      results);
}

}  // namespace freehold::cli::timers
