// SPDX-License-Identifier: MIT
// Whether a finished verdict agrees with what it rests on. Asked before a verdict is handed out; what does not agree is
// "undecided". It looks at the trials' medians alone, not at how the verdict came about, so that an error there shows here.
//
// Pure functions. One thread. Cost: O(cells x trials).
#pragma once
#include <vector>

#include "tools/doctor/facts/experiment.hpp"
#include "tools/doctor/verdict/verdict.hpp"

namespace freehold::doctor {

// Pre: the verdict is of this experiment, and compares two settings.
[[nodiscard]] std::vector<Contradiction> contradictions_in(const Experiment& experiment, const Verdict& verdict);

}  // namespace freehold::doctor
