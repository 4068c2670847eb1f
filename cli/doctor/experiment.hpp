// Carries an experiment out: the program under every treatment in every setting, round by round, and what was recorded.
#pragma once
#include <optional>
#include <string>

#include "cli/doctor/diagnosis.hpp"
#include "cli/support/interrupts.hpp"
#include "cli/support/progress.hpp"

namespace freehold::cli::doctor {

struct Examination {
  Settings settings;
  std::string program;                    // the file
  std::optional<std::string> allocators;  // of --allocators
  bool example = false;
};

// Throws Failure if the program cannot be examined: it fails, does not end, or was interrupted before its first end.
[[nodiscard]] Diagnosis examine(const Examination& examination, Interrupts& interrupts, Progress& progress);

}  // namespace freehold::cli::doctor
