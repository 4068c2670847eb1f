#include "cli/timers/page.hpp"

#include <nlohmann/json.hpp>

#include "cli/report/assets.hpp"
#include "cli/report/page.hpp"

namespace freehold::cli::timers {

std::string page_of(const nlohmann::ordered_json& results) {
  return cli::page_of(assets::timers_html, assets::timers_js, results);
}

}  // namespace freehold::cli::timers
