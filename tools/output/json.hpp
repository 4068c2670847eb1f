// SPDX-License-Identifier: MIT
// Parts of JSON that several reports share.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/support/machine.hpp"

// Null for none.
template <class T>
struct nlohmann::adl_serializer<std::optional<T>> {
  static void to_json(auto& json, const std::optional<T>& value) {
    json = nullptr;
    if (value) json = *value;
  }
  static void from_json(const auto& json, std::optional<T>& value) {
    value.reset();
    if (!json.is_null()) value = json.template get<T>();
  }
};

// An object with these members of `of`, each under its own name, and the other way round.
#define FREEHOLD_JSON_OF(of, ...)                                            \
  [](const auto& nlohmann_json_t) {                                          \
    nlohmann::ordered_json nlohmann_json_j;                                  \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(NLOHMANN_JSON_TO, __VA_ARGS__)) \
    return nlohmann_json_j;                                                  \
  }(of)
#define FREEHOLD_FROM_JSON(json, of, ...)                                      \
  [](const auto& nlohmann_json_j, auto& nlohmann_json_t) {                     \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(NLOHMANN_JSON_FROM, __VA_ARGS__)) \
  }(json, of)

namespace freehold::inline tools {

template <class T>
[[nodiscard]] nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value;
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

}  // namespace freehold::inline tools
