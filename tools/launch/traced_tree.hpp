// SPDX-License-Identifier: MIT
// Runs a program and looks at each process of its tree at the moment when it ends, which ptrace shows: no process is too
// short. Slow for programs that start many threads; a program that traces its own children cannot be run so.
#pragma once
#include <sys/types.h>

#include <functional>

#include "tools/launch/launch.hpp"

namespace freehold::inline tools {

// Calls `look` once for each process that ended, and for those that are left when the program has ended; these go on.
// The program's standard output goes to standard error. Returns its wait status. Throws Failure where it cannot be started
// or traced.
int run_traced(const Launch& launch, const std::function<void(pid_t)>& look);

}  // namespace freehold::inline tools
