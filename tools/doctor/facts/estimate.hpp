// SPDX-License-Identifier: MIT
// A figure of which only samples are known.
#pragma once

namespace freehold::doctor {

// An estimate and where it could lie: the median of what was measured, and the limits that nine of ten repetitions keep.
struct Estimate {
  double low = 0;
  double value = 0;
  double high = 0;
};

}  // namespace freehold::doctor
