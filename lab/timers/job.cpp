// SPDX-License-Identifier: MIT
#include "lab/timers/job.hpp"

#include "cli/support/arguments.hpp"
#include "lab/experiment/job_words.hpp"

namespace freehold::cli::timers {
std::string_view name_of(Trial test) {
  constexpr std::string_view kNames[] = {"fresh-random", "fresh-ascending", "random", "ascending",
                                         "cancel",       "rearm",           "shared"};
  return kNames[static_cast<std::size_t>(test)];
}

std::string_view name_of(Load load) {
  constexpr std::string_view kNames[] = {"alone", "busy", "heap"};
  return kNames[static_cast<std::size_t>(load)];
}

std::string_view name_of(Phase phase) {
  constexpr std::string_view kNames[] = {"create", "set", "cancel", "handle", "set-then-cancel", "all"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::optional<Trial> test_of(std::string_view name) { return value_of<Trial>(kTests, name); }
std::optional<Load> load_of(std::string_view name) { return value_of<Load>(kLoads, name); }

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

std::vector<std::string> words_of(const Job& job) {
  return job_words(job.structure, job.test, job.load, job.timers, job.users, job.background, job.milliseconds);
}

Job job_of(const std::vector<std::string>& words) {
  JobWords next(kWorkerCommand, words, 7);
  return {.structure = next.text(),
          .test = next.named(test_of),
          .load = next.named(load_of),
          .timers = next.number(),
          .users = next.number(),
          .background = next.number(),
          .milliseconds = next.number()};
}

}  // namespace freehold::cli::timers
