// A task of the plan as a process: its arguments, what is preloaded, its CPUs. And as a line of shell.
#pragma once
#include <string>
#include <vector>

#include "cli/doctor/diagnosis.hpp"
#include "cli/doctor/plan.hpp"
#include "freehold/doctor/program.hpp"

namespace freehold::cli::doctor {

// `cpus`: those of the caller, in the order in which they are used.
[[nodiscard]] freehold::doctor::Command command_of(const Settings& settings, const std::string& program,
                                                   const freehold::doctor::Setting& setting);
// One for each copy.
[[nodiscard]] std::vector<freehold::doctor::Surroundings> places_of(const Settings& settings,
                                                                    const freehold::doctor::Variant& variant,
                                                                    const freehold::doctor::Setting& setting,
                                                                    const std::vector<unsigned>& cpus);
// How each cell is run by hand.
[[nodiscard]] std::vector<Repetition> repetitions_of(const Diagnosis& diagnosis, const std::vector<unsigned>& cpus);

}  // namespace freehold::cli::doctor
