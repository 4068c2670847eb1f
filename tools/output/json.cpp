// SPDX-License-Identifier: MIT
#include "tools/output/json.hpp"

namespace freehold::inline tools {
using nlohmann::ordered_json;

ordered_json text_or_null(const std::string& text) { return text.empty() ? ordered_json(nullptr) : ordered_json(text); }

ordered_json machine_json(const Machine& machine) {
  ordered_json json = FREEHOLD_JSON_OF(machine, cpu_model, cpus, cpus_source, system, libc);
  json["huge_pages"] = text_or_null(machine.huge_pages);
  return json;
}

std::string text_of(const ordered_json& json) {
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace freehold::inline tools
