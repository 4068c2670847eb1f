// SPDX-License-Identifier: MIT
// How much any allocator could do for a program: the program runs with calls of malloc and free that take longer by known
// delays, and by what that costs it, what it would gain if they took less time is told backwards.
//
//   hang   = d(cost) / d(delay): calls one after the other that the program waits for; calls of threads that run side by
//            side, or that others wait for anyway, count for less. Never more than there are
//   saved  = hang x (time of a call, as recorded)  +  the kernel's share of the time, which is for memory at most
//   bound  = cost / (cost - saved)
//
// It is a bound of time spent inside malloc, free and the kernel. Where an allocator puts blocks can help beside: if another
// one surely does more, there is no bound. Pure functions. Cost: O(trials) for each of a thousand draws.
#pragma once
#include <optional>
#include <span>

#include "freehold/doctor/analysis/experiment.hpp"
#include "freehold/doctor/analysis/verdict.hpp"

namespace freehold::doctor {

// `as_it_is`: the cell that was delayed. Of no delays: none. `usual_spread`: what trials of the experiment differ by, as
// a share of their median.
[[nodiscard]] std::optional<Estimate> bound_of(const Experiment& experiment, const Cell& as_it_is,
                                               const Attribution& recorded, std::span<const Fix> fixes, double usual_spread);

}  // namespace freehold::doctor
