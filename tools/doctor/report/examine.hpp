// SPDX-License-Identifier: MIT
// The command's side of an examination: finds the libraries that are tried, shows how far it has come, and says in sentences
// what could not be done. tools/doctor/run/examination.hpp does the work.
#pragma once
#include <optional>
#include <string>

#include "tools/doctor/report/diagnosis.hpp"
#include "tools/doctor/run/examination.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/interrupts.hpp"

namespace freehold::doctor::report {

struct DoctorRequest {
  doctor::Request program;
  std::optional<std::string> allocators;  // the words of --allocators; none: all that are there
  bool example = false;                   // the bundled program
};

// Throws Failure if the program cannot be examined: it fails, does not end, or was interrupted before its first end.
[[nodiscard]] Diagnosis examine(const DoctorRequest& request, Interrupts& interrupts, Progress& progress);

// Each cell of the experiment as a line of shell, to run it by hand. `cpus`: those of the caller, in the order of their use.
[[nodiscard]] std::vector<Repetition> repetitions_of(const Diagnosis& diagnosis, const std::vector<unsigned>& cpus);

// A refusal as the one line and the exit code that the command ends with. `program`: its name as typed. `signal`: what ended
// the examination early, or 0.
[[nodiscard]] Failure failure_of(const doctor::Refused& refused, const std::string& program, const Settings& settings,
                                 int signal);

}  // namespace freehold::doctor::report
