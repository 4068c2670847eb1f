// SPDX-License-Identifier: MIT
// Says whether a program's work grows with its threads: each thread brings more work, so that time that stays the same
// is scaling. If threads share the work, time that stays the same is a loss.
//
// Allocations tell it: a thread that does as much as another one allocates as much. A program with few allocations is judged
// by how many instructions it executes, where the machine counts them: as many with more threads are the same work. Else it
// is judged by the instructions that its CPU time goes to (code_growth.hpp). If these were not sampled, CPU time that grows
// with the threads is only a guess: threads that spin, or that write the same cache lines, need more CPU time for the same
// work.
#pragma once
#include <optional>

#include "tools/doctor/facts/experiment.hpp"

namespace freehold::doctor {

struct Attribution;

// Returns how many times as many instructions the program executes in the sweep's last setting as in its first. None: the
// machine does not count them, or fewer were counted with more threads, which tells of the count rather than of the work.
[[nodiscard]] std::optional<double> instruction_growth_of(const Experiment& experiment);

// True if the program as it is needs more CPU time in the sweep's last setting than in its first.
[[nodiscard]] bool more_threads_need_more(const Experiment& experiment);

struct WorkGrowth {
  bool grows = false;
  bool is_guessed = false;  // whether it rests on CPU time alone
};

// Judges it. `recorded`, `recorded_alone`: the program as it is in the sweep's last and first setting; null: not recorded.
[[nodiscard]] WorkGrowth work_growth_of(const Experiment& experiment, const Attribution* recorded,
                                        const Attribution* recorded_alone);

}  // namespace freehold::doctor
