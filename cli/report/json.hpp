// SPDX-License-Identifier: MIT
// Parts of JSON that several reports share.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/support/machine.hpp"

namespace freehold::cli {

template <class T>
[[nodiscard]] nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

// An array of element(value) for every value.
[[nodiscard]] nlohmann::ordered_json list_json(const auto& values, auto element) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& value : values) list.push_back(element(value));
  return list;
}

template <class T>
[[nodiscard]] nlohmann::ordered_json names_json(const std::vector<T>& values) {
  return list_json(values, [](T value) { return name_of(value); });
}

// Null for an empty text.
[[nodiscard]] nlohmann::ordered_json text_or_null(const std::string& text);

[[nodiscard]] nlohmann::ordered_json machine_json(const Machine& machine);
// For a file: one line per field, invalid UTF-8 replaced.
[[nodiscard]] std::string text_of(const nlohmann::ordered_json& json);

}  // namespace freehold::cli
