// SPDX-License-Identifier: MIT
// How much any allocator could do for a program: the program runs with calls of malloc and free that take longer by known
// delays, and by what that costs it, what it would gain if they took less time is told backwards.
//
//   hang   = d(cost) / d(delay): calls one after the other that the program waits for; calls of threads that run side by
//            side, or that others wait for anyway, count for less. Never more than there are
//   saved  = hang x (time of a call, as recorded)  +  the kernel's time for page faults
//   bound  = cost / (cost - saved)
//
// Trials that differ make hang uncertain, so that a second bound holds beside: the share of the CPU time that malloc and
// free were recorded to take, half as much again, on each CPU that is busy.
//
// Without a recording the share is that of the samples of its code, and delays say nothing.
//
// It is a bound of time spent inside malloc, free and the kernel. Where an allocator puts blocks can help beside.
// Pure functions. Cost: O(trials) for each of a thousand draws.
#pragma once
#include <optional>

#include "tools/doctor/facts/estimate.hpp"
#include "tools/doctor/facts/experiment.hpp"

namespace freehold::doctor {

struct Attribution;

// Returns the bound. `as_it_is`: the cell that was delayed, if any. `recorded`: null: it was not. `usual_spread`: what
// trials of the experiment differ by, as a share of their median. None: neither recording nor samples say what malloc takes.
[[nodiscard]] std::optional<Estimate> bound_of(const Experiment& experiment, const Cell& as_it_is,
                                               const Attribution* recorded, double usual_spread);

}  // namespace freehold::doctor
