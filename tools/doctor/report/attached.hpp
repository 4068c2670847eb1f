// SPDX-License-Identifier: MIT
// The command's side of watching a process that runs already: refusals, progress, and the report as text and as JSON.
// tools/doctor/run/attached.hpp does the work.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/doctor/run/attached.hpp"
#include "tools/support/interrupts.hpp"
#include "tools/support/machine.hpp"

namespace freehold::doctor::report {

struct AttachedReport {
  doctor::Attached process;
  Machine machine;
  std::string date;                // UTC, ISO 8601
  std::vector<std::string> notes;  // what could not be done, and why
};

inline constexpr const char* kAttachedSchema = "freehold-doctor-attached/1";

// Throws Failure: no such process, not allowed.
[[nodiscard]] AttachedReport attach(const doctor::AttachSettings& settings, Interrupts& interrupts, Progress& progress);
[[nodiscard]] std::string text_of(const AttachedReport& report);
[[nodiscard]] nlohmann::ordered_json json_of(const AttachedReport& report);

// Sentences about what nobody can know from outside.
[[nodiscard]] std::vector<std::string> unknown_of(const doctor::Attached& attached);

}  // namespace freehold::doctor::report
