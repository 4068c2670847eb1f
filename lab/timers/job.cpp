// SPDX-License-Identifier: MIT
#include "lab/timers/job.hpp"

namespace freehold::cli::timers {

const std::vector<Phase>& phases_of(Trial test) {
  static const std::vector<Phase> life{Phase::kCreate, Phase::kSet, Phase::kHandle, Phase::kAll};
  // A structure may leave part of a cancellation for later; it does that part in the phase handle.
  static const std::vector<Phase> cancelled{Phase::kCreate, Phase::kSet, Phase::kCancel, Phase::kHandle, Phase::kAll};
  static const std::vector<Phase> rearmed{Phase::kRearm};
  switch (test) {
    case Trial::kFreshRandom:
    case Trial::kFreshAscending:
    case Trial::kRandom:
    case Trial::kAscending: return life;
    case Trial::kCancel: return cancelled;
    case Trial::kRearm:
    case Trial::kShared: return rearmed;
  }
  __builtin_unreachable();
}

Cost& Cost::operator+=(const Cost& other) noexcept {
  operations += other.operations;
  cpu_ns += other.cpu_ns;
  wall_ns += other.wall_ns;
  sleeps += other.sleeps;
  waits += other.waits;
  return *this;
}

}  // namespace freehold::cli::timers
