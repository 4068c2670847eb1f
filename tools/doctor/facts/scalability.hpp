// SPDX-License-Identifier: MIT
// The Universal Scalability Law fitted to what was measured: how much of a program's time its threads wait for each other
// (contention), and how much each pays for all the others (coherency).
#pragma once
#include <span>
#include <vector>

namespace freehold::doctor {

// The Universal Scalability Law, for one variant: speed(n) = n / (1 + contention (n - 1) + coherency n (n - 1)).
struct Scalability {
  std::size_t variant = 0;
  double contention = 0;  // sigma
  double coherency = 0;   // kappa; 0 where there are fewer than three settings to tell the two apart
  bool has_coherency = false;
  double worst_error = 0;  // greatest error of the fit, relative to what was measured
};

// A program on `cpus` CPUs was so many times as fast as on one.
struct Speed {
  double cpus = 1;
  double speed = 1;
};

// Least squares of n / speed - 1 = contention (n - 1) + coherency n (n - 1), neither of them negative. With fewer than two
// points beyond one CPU all is taken for contention. `variant` of the result is left to the caller.
[[nodiscard]] Scalability fit(std::span<const Speed> speeds);
[[nodiscard]] double speed_at(const Scalability& law, double cpus) noexcept;

}  // namespace freehold::doctor
