// SPDX-License-Identifier: MIT
// Two commands, run in turns: before, after; after, before; and so on, so that drifts of the machine affect both alike.
//
//   first run of each -> rounds on all CPUs, and on one if there is time -> one recorded run of each -> what changed
//
// Prints nothing. The caller runs the commands (see trials_on() for the usual way), finds the probe, shows how far it has
// come, and turns notes and refusals into sentences. One thread at a time.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/doctor/facts/comparison.hpp"
#include "tools/doctor/run/program.hpp"
#include "tools/doctor/run/refusal.hpp"

namespace freehold::doctor {

enum class Version : std::uint8_t { kBefore, kAfter };

struct PairedTrials {
  std::array<Command, 2> commands;  // by Version
  double budget_s = 0;              // time for all runs; 0: `rounds` decides
  unsigned rounds = 0;              // instead of a budget
};

// The trials' present step.
struct PairedActivity {
  enum class Kind : std::uint8_t { kFirstRun, kTrial, kRecording };
  Kind kind = Kind::kFirstRun;
  Version version = Version::kBefore;
  unsigned round = 0, rounds = 0;  // kTrial: from 1 on
};

// Something that could not be done.
struct PairedNote {
  enum class Kind : std::uint8_t {
    kUnderFreehold,        // the program, which comes before the probe: nothing was recorded
    kRecordedRunFailed,    // why: how it ended
    kRecordingUnreadable,  // why: of a process
  };
  Kind kind = Kind::kUnderFreehold;
  Version version = Version::kBefore;
  std::string why = {};
};

struct PairedCaller {
  // Runs a command to its end; `seconds`: the deadline.
  std::function<Run(const Command&, const LaunchOptions&, double seconds)> run;
  std::function<double()> now_s;  // the clock that the budget is told by
  std::function<void(const PairedActivity&)> show;
  // The library that records; empty: none. `files`: that the program had mapped as code.
  std::function<std::string(Version, const std::set<std::string>& files)> probe;
  std::function<int()> signal;  // that asks for an early end; 0: none
  std::vector<unsigned> cpus;   // in the order in which they are used; not empty
};
// A caller that runs the commands as processes of this machine. The others are to be filled in.
[[nodiscard]] PairedCaller trials_on(const Host& host);

struct PairedOutcome {
  std::array<Side, 2> sides;  // by Version
  Comparison comparison;
  bool complete = true;  // false: interrupted
  int signal = 0;        // that ended it early, or 0
  std::vector<PairedNote> notes;
};

// Why there is no comparison, and which of the two is meant.
class PairedRefused : public Refused {
 public:
  PairedRefused(Version version, Refused refused) : Refused(std::move(refused)), version_(version) {}
  [[nodiscard]] Version version() const noexcept { return version_; }

 private:
  Version version_;
};

// Throws PairedRefused if one of them cannot be run, fails or does not end, or if it was interrupted before each had a
// trial; Refused if there is no room for recordings.
[[nodiscard]] PairedOutcome run_paired(const PairedTrials& trials, const PairedCaller& caller);

}  // namespace freehold::doctor
