// SPDX-License-Identifier: MIT
// A figure of which only samples are known.
#pragma once

#include <cmath>

namespace freehold::doctor {

// An estimate and where it could lie: the median of what was measured, and the limits that nine of ten repetitions keep.
struct Estimate {
  double low = 0;
  double value = 0;
  double high = 0;
};

// Not std::hypot, of which a build takes a symbol that glibc has only from 2.35 on.
inline double error_of_sum(double error, double other) { return std::sqrt(error * error + other * other); }

}  // namespace freehold::doctor
