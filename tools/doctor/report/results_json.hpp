// SPDX-License-Identifier: MIT
// A diagnosis as JSON. docs/doctor-schema.md describes every field; a test holds the two together.
#pragma once
#include <cmath>
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
// The facts that are known, by name. Those without a limit, as "as much as one likes", are left out.
template <class FactOf, std::size_t kCount>
[[nodiscard]] nlohmann::ordered_json facts_json(const doctor::FactValues<FactOf, kCount>& facts) {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto& fact = facts[static_cast<FactOf>(i)];
    if (fact && std::isfinite(fact->value)) all[std::string(describe(static_cast<FactOf>(i)).name)] = *fact;
  }
  return all;
}
// The variables that a variant sets, as an object.
[[nodiscard]] nlohmann::ordered_json environment_json(const doctor::Variant& variant);
}  // namespace freehold::doctor::report
