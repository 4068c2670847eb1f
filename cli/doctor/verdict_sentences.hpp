// SPDX-License-Identifier: MIT
// The parts of verdict_text.hpp that fill files of their own.
#pragma once
#include <string>
#include <vector>

#include "cli/doctor/verdict_text.hpp"

namespace freehold::cli::doctor {

// Whether there are two settings, so that something can be said of scaling.
[[nodiscard]] inline bool was_compared(const freehold::doctor::Verdict& verdict) { return !(verdict.alone == verdict.all); }
[[nodiscard]] std::string headline_of(const Diagnosis& diagnosis);
// The figures behind the verdict, a sentence each.
[[nodiscard]] std::vector<std::string> evidence_of(const Diagnosis& diagnosis);

}  // namespace freehold::cli::doctor
