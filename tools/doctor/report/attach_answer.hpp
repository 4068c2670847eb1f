// SPDX-License-Identifier: MIT
// The answer about a process that was watched while it ran.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/doctor/facts/watched_process.hpp"
#include "tools/doctor/report/document.hpp"
#include "tools/support/machine.hpp"

namespace freehold::doctor::report {

struct AttachedReport {
  doctor::Attached process;
  Machine machine;
  std::string date;                // UTC, ISO 8601
  std::vector<std::string> notes;  // what could not be done, and why
};

inline constexpr const char* kAttachedSchema = "freehold-doctor-attached/1";

[[nodiscard]] Document document_of(const AttachedReport& report);
[[nodiscard]] nlohmann::ordered_json json_of(const AttachedReport& report);

// Says, in sentences, what cannot be known from outside.
[[nodiscard]] std::vector<std::string> unknown_of(const doctor::Attached& attached);

}  // namespace freehold::doctor::report
