// SPDX-License-Identifier: MIT
// The answer of `freehold doctor --aged`: how much slower a program is on an aged heap, under each malloc.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/doctor/facts/aged.hpp"
#include "tools/doctor/report/document.hpp"
#include "tools/support/machine.hpp"

namespace freehold::doctor::report {

struct AgedDiagnosis {
  std::vector<std::string> command;
  std::string recording;  // the file of the history; empty: it is made up
  Machine machine;
  std::string date;  // UTC, ISO 8601
  int signal = 0;    // that ended it early, or 0
  doctor::History history;
  std::vector<doctor::AgedMalloc> mallocs;  // the program's own first
  std::vector<std::string> notes;
};

// "aged-heap": the program takes more CPU time on the aged heap, beyond chance; "none": it takes less than a tenth more;
// else "undecided". Pre: the first malloc has trials of both heaps.
[[nodiscard]] std::string_view cause_of(const AgedDiagnosis& diagnosis);

[[nodiscard]] Document document_of(const AgedDiagnosis& diagnosis);
[[nodiscard]] nlohmann::ordered_json json_of(const AgedDiagnosis& diagnosis);

}  // namespace freehold::doctor::report
