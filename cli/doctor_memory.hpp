// SPDX-License-Identifier: MIT
// The question of memory, as doctor.cpp asks it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/doctor/condition.hpp"
#include "cli/doctor/memory.hpp"
#include "cli/support/failure.hpp"

namespace freehold::cli {

struct MemoryOutputs {
  std::optional<std::string> json, html, summary;  // files; "-" for standard output
  std::vector<doctor::Condition> conditions;       // of --fail-if
};

// Examines the program and writes what was found. Returns the exit code. Throws Failure.
[[nodiscard]] int run_doctor_memory(const doctor::MemoryRequest& request, const MemoryOutputs& outputs);

}  // namespace freehold::cli
