// SPDX-License-Identifier: MIT
// The calling thread's stack, by its unwind information.
#pragma once
#include <cstdint>

#include "tools/doctor/probe/trace_format.hpp"

namespace freehold::doctor::probe {

// Return addresses, innermost first, without the probe's own. Returns how many.
[[nodiscard]] unsigned walk_stack(std::uint64_t (&addresses)[kMaxDepth]) noexcept;

}  // namespace freehold::doctor::probe
