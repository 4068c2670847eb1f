// SPDX-License-Identifier: MIT
// A diagnosis as JSON. docs/doctor-schema.md describes every field; a test holds the two together.
#pragma once
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>

#include "tools/doctor/report/diagnosis.hpp"
#include "tools/output/json.hpp"

// A value with its limits.
template <>
struct nlohmann::adl_serializer<freehold::doctor::Estimate> {
  static void to_json(auto& json, const freehold::doctor::Estimate& of) { json = FREEHOLD_JSON_OF(of, low, value, high); }
  static void from_json(const auto& json, freehold::doctor::Estimate& of) { FREEHOLD_FROM_JSON(json, of, low, value, high); }
};

namespace freehold::doctor::report {

// How much of a recording is written: a file has everything, a page what a person would read. What is left out is counted.
struct Limits {
  std::size_t sites = std::numeric_limits<std::size_t>::max();
  std::size_t stacks_of_a_site = std::numeric_limits<std::size_t>::max();
  std::size_t frames_of_a_stack = std::numeric_limits<std::size_t>::max();
  std::size_t characters_of_a_name = std::numeric_limits<std::size_t>::max();
  bool alone = true;  // the recording on one CPU, too
};

inline constexpr const char* kSchema = "freehold-doctor/1";

[[nodiscard]] nlohmann::ordered_json results_json(const Diagnosis& diagnosis, const Limits& limits = {});
// The variables that a variant sets, as an object.
[[nodiscard]] nlohmann::ordered_json environment_json(const doctor::Variant& variant);
}  // namespace freehold::doctor::report
