// SPDX-License-Identifier: MIT
// A trial as a process: the program's arguments, the libraries that are preloaded into it, and its CPUs.
#pragma once
#include <string>
#include <vector>

#include "tools/doctor/facts/experiment.hpp"
#include "tools/doctor/facts/settings.hpp"
#include "tools/doctor/run/program.hpp"

namespace freehold::doctor {

[[nodiscard]] Command command_of(const Settings& settings, const std::string& program, const Setting& setting);
// One for each copy. `cpus`: those of the caller, in the order in which they are used.
[[nodiscard]] std::vector<LaunchOptions> launch_options_of(const Settings& settings, const Variant& variant,
                                                           const Setting& setting, const std::vector<unsigned>& cpus);

}  // namespace freehold::doctor
