// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/scalability.hpp"

#include <algorithm>
#include <cmath>

namespace freehold::doctor {
namespace {

// The sums of the normal equations, for y = contention * a + coherency * b.
struct Sums {
  double aa = 0, ab = 0, bb = 0, ay = 0, by = 0;
};

Sums sums_of(std::span<const Speed> speeds) {
  Sums sums;
  for (const auto& [n, speed] : speeds) {
    const double a = n - 1, b = n * (n - 1), y = n / speed - 1;
    sums.aa += a * a;
    sums.ab += a * b;
    sums.bb += b * b;
    sums.ay += a * y;
    sums.by += b * y;
  }
  return sums;
}

// Both free; where one comes out negative it is none, and the other is fitted alone.
void solve(const Sums& s, Scalability& law) {
  const double determinant = s.aa * s.bb - s.ab * s.ab;
  law.contention = (s.ay * s.bb - s.by * s.ab) / determinant;
  law.coherency = (s.by * s.aa - s.ay * s.ab) / determinant;
  if (law.contention < 0) {
    law.contention = 0;
    law.coherency = std::max(0.0, s.by / s.bb);
  } else if (law.coherency < 0) {
    law.coherency = 0;
    law.contention = std::max(0.0, s.ay / s.aa);
  }
}

}  // namespace

double speed_at(const Scalability& law, double cpus) noexcept {
  return cpus / (1 + law.contention * (cpus - 1) + law.coherency * cpus * (cpus - 1));
}

Scalability fit(std::span<const Speed> speeds) {
  Scalability law;
  std::vector<double> beyond_one;
  for (const Speed& speed : speeds) {
    if (speed.cpus > 1 && std::ranges::count(beyond_one, speed.cpus) == 0) beyond_one.push_back(speed.cpus);
  }
  const Sums sums = sums_of(speeds);
  law.has_coherency = beyond_one.size() >= 2;
  if (law.has_coherency)
    solve(sums, law);
  else if (sums.aa > 0)
    law.contention = std::max(0.0, sums.ay / sums.aa);
  for (const Speed& speed : speeds)
    law.worst_error = std::max(law.worst_error, std::abs(speed_at(law, speed.cpus) / speed.speed - 1));
  return law;
}

}  // namespace freehold::doctor
