// SPDX-License-Identifier: MIT
// A diagnosis as JSON. docs/doctor-schema.md describes every field; a test holds the two together.
#pragma once
#include <cstddef>
#include <limits>
#include <nlohmann/json_fwd.hpp>

#include "cli/doctor/diagnosis.hpp"
#include "freehold/doctor/analysis/attribution.hpp"

namespace freehold::cli::doctor {

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
// A value with its limits.
[[nodiscard]] nlohmann::ordered_json estimate_json(const freehold::doctor::Estimate& estimate);
[[nodiscard]] freehold::doctor::Estimate estimate_of(const nlohmann::ordered_json& json);

// A recording, as a part of the JSON of a diagnosis.
[[nodiscard]] nlohmann::ordered_json recording_json(const freehold::doctor::Attribution& recorded, const Limits& limits);

}  // namespace freehold::cli::doctor
