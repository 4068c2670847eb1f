// SPDX-License-Identifier: MIT
// A diagnosis as JSON. docs/doctor-schema.md describes every field; a test holds the two together.
#pragma once
#include <nlohmann/json.hpp>

#include "tools/doctor/report/words.hpp"
#include "tools/output/json.hpp"

// A value with its limits.
template <>
struct nlohmann::adl_serializer<freehold::doctor::Estimate> {
  static void to_json(auto& json, const freehold::doctor::Estimate& of) { json = FREEHOLD_JSON_OF(of, low, value, high); }
  static void from_json(const auto& json, freehold::doctor::Estimate& of) { FREEHOLD_FROM_JSON(json, of, low, value, high); }
};

namespace freehold::doctor::report {

inline constexpr const char* kSchema = "freehold-doctor/1";

[[nodiscard]] nlohmann::ordered_json results_json(const Diagnosis& diagnosis, const Words& words);
// A report as one self-contained HTML page, shortened to what a person would read. `report`: of results_json().
[[nodiscard]] std::string page_of(nlohmann::ordered_json report);
// The same of the question of memory. `report`: of json_of(MemoryDiagnosis).
[[nodiscard]] std::string memory_page_of(nlohmann::ordered_json report);
// The variables that a variant sets, as an object.
[[nodiscard]] nlohmann::ordered_json environment_json(const doctor::Variant& variant);
}  // namespace freehold::doctor::report
