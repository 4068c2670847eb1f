#include "cli/pools/page.hpp"

#include <nlohmann/json.hpp>

#include "cli/report/assets.hpp"
#include "cli/report/page.hpp"

namespace freehold::cli::pools {

std::string page_of(const nlohmann::ordered_json& results) {
  return cli::page_of(assets::pools_html, assets::pools_js, results);
}

}  // namespace freehold::cli::pools
