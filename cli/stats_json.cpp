// SPDX-License-Identifier: MIT
#include "cli/stats_json.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "cli/stats_table.hpp"

namespace freehold::cli {
using nlohmann::ordered_json;

ordered_json stats_json(const alloc::Stats& s) {
  ordered_json json = {{"version", s.version}}, classes = ordered_json::array();
#define FREEHOLD_ADD(name, public_name) json[#name] = s.name;
  FREEHOLD_FIGURES(FREEHOLD_ADD)
#undef FREEHOLD_ADD
  json["cpus"] = s.cpus;
  json["cpus_source"] = text_of(s.cpus_source);
  json["cache_mode"] = text_of(s.cache_mode);
  json["huge_pages"] = text_of(s.huge_pages);
  for (std::uint32_t i = 0; i < s.class_count; ++i) {
#define FREEHOLD_PAIR(name) {#name, s.classes[i].name},
    classes.push_back({FREEHOLD_CLASS_FIGURES(FREEHOLD_PAIR)});
#undef FREEHOLD_PAIR
  }
  json["classes"] = std::move(classes);
  return json;
}

}  // namespace freehold::cli
