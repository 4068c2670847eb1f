// SPDX-License-Identifier: MIT
// An answer is clear if more trials would not change its head, the advice in it, or the limits of what it tells. A verdict
// that is clear, and stays the same from one look to the next, ends the trials, however much of the budget is left.
//
// Pure function. Cost: O(variants).
#pragma once
#include "tools/doctor/facts/experiment.hpp"
#include "tools/doctor/verdict/verdict.hpp"

namespace freehold::doctor {

// Pre: the verdict is of this experiment.
[[nodiscard]] bool is_clear(const Experiment& experiment, const Verdict& verdict);

}  // namespace freehold::doctor
