// What the results of every experiment have in common as JSON.
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

template <class T>
[[nodiscard]] nlohmann::ordered_json names_json(const std::vector<T>& values) {
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  for (const T value : values) names.push_back(name_of(value));
  return names;
}

// Null for an empty text.
[[nodiscard]] nlohmann::ordered_json text_or_null(const std::string& text);

[[nodiscard]] nlohmann::ordered_json machine_json(const Machine& machine);
// What the results of an experiment begin with.
template <class Results>
[[nodiscard]] nlohmann::ordered_json head_json(const char* format, const Results& results) {
  return {{"format", format},           {"version", 1},
          {"date", results.date},       {"complete", results.complete},
          {"seconds", results.seconds}, {"machine", machine_json(results.machine)}};
}
// For a file: one line per field, invalid UTF-8 replaced.
[[nodiscard]] std::string text_of(const nlohmann::ordered_json& json);

}  // namespace freehold::cli
