// SPDX-License-Identifier: MIT
// The question of memory, as doctor.cpp asks it.
#pragma once
#include <optional>
#include <string>

#include "cli/doctor/memory.hpp"
#include "cli/support/failure.hpp"

namespace freehold::cli {

struct MemoryOutputs {
  std::optional<std::string> json, summary;  // files; "-" for standard output
};

// Examines the program and writes what was found. Returns the exit code. Throws Failure.
[[nodiscard]] int run_doctor_memory(const doctor::MemoryRequest& request, const MemoryOutputs& outputs);

}  // namespace freehold::cli
