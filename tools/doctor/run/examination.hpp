// SPDX-License-Identifier: MIT
// Examines a program: runs it under every treatment in every setting, round by round, records it, and draws the verdict.
//
//   machine control -> first run -> tools -> rounds -> machine control -> recordings read -> verdict
//
// Prints nothing. The caller shows how far it has come, finds the libraries, and turns notes and refusals into sentences.
// One thread at a time, which must be able to wait for children.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/doctor/facts/experiment.hpp"
#include "tools/doctor/facts/profile.hpp"
#include "tools/doctor/facts/settings.hpp"
#include "tools/doctor/facts/symbols.hpp"
#include "tools/doctor/run/own_allocators.hpp"
#include "tools/doctor/run/program.hpp"
#include "tools/doctor/run/refusal.hpp"
#include "tools/doctor/verdict/verdict.hpp"

namespace freehold::doctor {

struct Request {
  Settings settings;
  std::string program;  // the file to run
};

// The tools that can be tried on a program. That depends on what the program is made of, and so is asked for after the first
// run.
struct Tools {
  std::vector<Variant> variants;       // the program as it is first
  bool takes_switches = false;         // a runtime's own switch ("PYTHONMALLOC=malloc") may be added as a treatment
  std::string probe = {}, delay = {};  // libraries to preload: what records, and what delays malloc and free; empty: none
};

// The examination's present step.
struct Activity {
  enum class Kind : std::uint8_t { kReadMachine, kFirstRun, kCountAllocations, kRecordSwitched, kTrial, kReadRecording };
  Kind kind = Kind::kReadMachine;
  Setting setting = {};
  std::string variant = {};  // kTrial: its name; kRecordSwitched: the switch
  unsigned round = 0;        // from 1 on
  bool recorded = false, sampled = false, delayed = false;
  double seconds_left = 0;              // 0: not known
  Doubt open = Doubt::kNone;            // why what decides is tried again; kNone: it is not
  Cause suspected = Cause::kUndecided;  // what the cause would be without that doubt
};

// Something that could not be done.
struct Note {
  enum class Kind : std::uint8_t { kRecordedRunFailed, kNothingRecorded, kRecordingUnreadable, kTookPrecedence };
  Kind kind = Kind::kNothingRecorded;
  Setting setting = {};
  std::string why = {};
};

struct Caller {
  Host host;
  std::function<void(const Activity&)> show;
  std::function<Tools(const std::set<std::string>& files)> tools;  // `files`: that the program had mapped as code
  std::function<int()> signal;                                     // that asks for an early end; 0: none
};

struct Outcome {
  Experiment experiment;
  // These recorded the program as it is, in the sweep's last setting and in its first; null: no recording, and a note says
  // why.
  std::shared_ptr<const Attribution> recorded, recorded_alone;
  // The runs that were recorded: what recording costs is told by comparing them with the same cell's trials.
  std::optional<Trial> recorded_trial, recorded_alone_trial;
  std::shared_ptr<const Profile> profile;  // of `recorded`, whole stacks; null: the same
  // The hottest instructions at which its threads spin, or write lines that others write; none: not seen.
  std::optional<Frame> spins_at, contended_at;
  Verdict verdict;
  std::vector<OwnAllocator> own_allocators;
  std::vector<Note> notes;
  std::vector<unsigned> cpus;  // that were used, in their order
  int signal = 0;              // that ended it early, or 0
};

// Throws Refused if the program cannot be examined.
[[nodiscard]] Outcome examine(const Request& request, const Caller& caller);

}  // namespace freehold::doctor
