// SPDX-License-Identifier: MIT
// freehold doctor --memory [options] -- PROGRAM ARGS…: why does this program take so much memory, and what mends it?
// doctor.cpp has the options; docs/memory.md explains the method.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/doctor/gate.hpp"
#include "cli/doctor/memory.hpp"
#include "cli/doctor_memory.hpp"
#include "cli/report/json.hpp"
#include "cli/support/output_file.hpp"

namespace freehold::cli {

int run_doctor_memory(const doctor::MemoryRequest& request, const MemoryOutputs& outputs) {
  doctor::MemoryDiagnosis diagnosis;
  {
    Interrupts interrupts;
    Progress progress;
    diagnosis = doctor::examine_memory(request, interrupts, progress);
  }
  const nlohmann::ordered_json report = doctor::json_of(diagnosis);
  const doctor::Gate gate = doctor::judge(outputs.conditions, doctor::memory_facts_of(report));
  const std::string json = text_of(report), answer = doctor::text_of(gate);
  const std::string summary = doctor::summary_of(diagnosis) + (answer.empty() ? "" : '\n' + answer);
  // Files first: a terminal that went away must not cost them.
  if (outputs.json && *outputs.json != "-") write_file(*outputs.json, json);
  if (outputs.html) write_file(*outputs.html, doctor::page_of(diagnosis));
  if (outputs.summary) write_file(*outputs.summary, doctor::markdown_of(diagnosis) + '\n' + doctor::markdown_of(gate));
  if (outputs.json == "-") {
    fmt::print(stderr, "{}", summary);
    print_to_stdout(json);
  } else {
    print_to_stdout(summary);
  }
  if (diagnosis.signal != 0) return 128 + diagnosis.signal;
  if (!outputs.conditions.empty()) return gate.exit_code();
  const bool failed =
      std::ranges::any_of(diagnosis.experiment.cells, [](const auto& cell) { return !cell.failure.empty(); });
  return failed ? kExitPartial : 0;
}

}  // namespace freehold::cli
