// SPDX-License-Identifier: MIT
// How to run by hand what the doctor ran: each cell of the experiment as a line of shell.
#pragma once
#include <vector>

#include "cli/doctor/diagnosis.hpp"

namespace freehold::cli::doctor {

// `cpus`: those of the caller, in the order in which they were used.
[[nodiscard]] std::vector<Repetition> repetitions_of(const Diagnosis& diagnosis, const std::vector<unsigned>& cpus);

}  // namespace freehold::cli::doctor
