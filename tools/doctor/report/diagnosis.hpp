// SPDX-License-Identifier: MIT
// Everything that one `freehold doctor` found out, and what it was asked: the terminal's summary, the JSON and the page are
// three views of it. Plain data; filled once by the experiment, then only read.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/doctor/facts/experiment.hpp"
#include "tools/doctor/facts/own_allocator.hpp"
#include "tools/doctor/facts/settings.hpp"
#include "tools/doctor/facts/symbols.hpp"
#include "tools/doctor/verdict/verdict.hpp"
#include "tools/support/machine.hpp"

namespace freehold::doctor {
struct Profile;
}

namespace freehold::doctor::report {

using doctor::OwnAllocator;
using doctor::Server;
using doctor::Settings;
using doctor::Work;

// How to do by hand what the doctor did.
struct Repetition {
  std::string what;   // "freehold, 2 CPUs"
  std::string shell;  // "env LD_PRELOAD=/usr/lib/libfreehold.so taskset -c 0,1 ./prog --size 3"
};

struct Diagnosis {
  Settings settings;
  std::string program;   // the file that was run
  bool example = false;  // the bundled one
  Machine machine;
  std::string date;    // UTC, ISO 8601
  double seconds = 0;  // that it all took
  int signal = 0;      // that ended it early, or 0

  doctor::Experiment experiment;
  // Recordings of the program as it is, in the sweep's last setting and in its first; null: a note says why.
  std::shared_ptr<const doctor::Attribution> recorded, recorded_alone;
  // The runs that were recorded, for what recording costs: to be compared with the same cell's.
  std::optional<doctor::Trial> recorded_trial, recorded_alone_trial;
  // The hottest instructions at which its threads spin, or write lines that others write; none: not seen.
  std::optional<doctor::Frame> spins_at, contended_at;
  std::shared_ptr<const doctor::Profile> profile;  // of the first; null: the same
  doctor::Verdict verdict;
  std::vector<OwnAllocator> own_allocators;

  std::vector<std::string> notes;  // sentences: what could not be done, and why
  std::vector<Repetition> repetitions;
};

// Returns the share that recording added to the program's time: 0.06. None: nothing to compare.
[[nodiscard]] std::optional<double> recording_cost(const Diagnosis& diagnosis);

}  // namespace freehold::doctor::report
