// SPDX-License-Identifier: MIT
// The command's side of an examination: finds the libraries that are tried, shows how far it has come, and says in sentences
// what could not be done. The rooms of the runs do the work.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "tools/doctor/report/aged_answer.hpp"
#include "tools/doctor/report/diagnosis.hpp"
#include "tools/doctor/report/memory.hpp"
#include "tools/doctor/run/examination.hpp"

namespace freehold::doctor::command {
using report::AgedDiagnosis;
using report::Diagnosis;
using report::MemoryDiagnosis;
using report::Repetition;

struct TimeRequest {
  doctor::Request program;
  std::optional<std::string> allocators;  // the words of --allocators; none: all that are there
  bool example = false;                   // the bundled program
};

struct MemoryRequest {
  doctor::Settings settings;
  std::string program;                        // the file to run
  std::optional<std::string> allocators;      // the words of --allocators; none: all that are there
  std::function<void(pid_t)> look_at_pins{};  // as MemoryCaller's
};

struct AgedRequest {
  doctor::Settings settings;
  std::string program;                    // the file to run
  std::optional<std::string> allocators;  // the words of --allocators; none: all mallocs that are there
  std::string recording;                  // the file of a history; empty: it is made up
};

// Throws Failure if the program cannot be examined: it fails, does not end, or was interrupted before its first end.
[[nodiscard]] Diagnosis ask(const TimeRequest& request);
[[nodiscard]] MemoryDiagnosis ask(const MemoryRequest& request);
[[nodiscard]] AgedDiagnosis ask(const AgedRequest& request);

// Each cell of the experiment as a line of shell, to run it by hand. `cpus`: those of the caller, in the order of their use.
[[nodiscard]] std::vector<Repetition> repetitions_of(const Diagnosis& diagnosis, const std::vector<unsigned>& cpus);

}  // namespace freehold::doctor::command
