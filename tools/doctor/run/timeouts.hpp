// SPDX-License-Identifier: MIT
// How long a run of the program may take before it is said to hang.
#pragma once

namespace freehold::doctor {

inline constexpr double kTimeout = 4;           // times what a run took before, or is expected to take
inline constexpr double kLeastTimeout_s = 5;    // and on top of that
inline constexpr double kFirstTimeout_s = 600;  // for the first run, where there is no budget
inline constexpr double kRecordingCost = 1.3;   // what a recorded or sampled run takes, of one that is not

}  // namespace freehold::doctor
