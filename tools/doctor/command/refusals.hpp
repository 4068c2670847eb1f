// SPDX-License-Identifier: MIT
// A program that cannot be examined: the one line and the exit code that the command ends with.
#pragma once
#include <string>

#include "tools/doctor/facts/settings.hpp"
#include "tools/doctor/run/refusal.hpp"
#include "tools/support/failure.hpp"

namespace freehold::doctor::command {

// `program`: its name as typed. `signal`: what ended the examination early, or 0.
[[nodiscard]] Failure failure_of(const doctor::Refused& refused, const std::string& program,
                                 const doctor::Settings& settings, int signal);

}  // namespace freehold::doctor::command
