// SPDX-License-Identifier: MIT
// The sampled heap profile of a process that runs, read from its memory (profile/live_profile.hpp). The process is neither
// stopped nor signalled, takes no lock and does not notice. One thread. Cost: some milliseconds, and a copy of the table of
// samples (12 MiB) and of the call stacks.
//
// No sample is read half-written: each part of the table is copied between two changes, or again. A program that is quiet
// for as long as one copy takes is shown as it was at one moment; of one that allocates hard each part is as it was at its
// own, all within some tens of milliseconds.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "freehold/profile/live_profile.hpp"
#include "tools/live/pins.hpp"
#include "tools/live/refusal.hpp"

namespace freehold::live {

struct LiveSampledBlock {
  std::uint64_t bytes = 0;  // that the program asked for
  std::uint64_t size = 0;   // that stood for it when it was sampled
  std::uint64_t mean = 0;   // distance of samples then
  std::uint64_t stack = 0;
  std::string heap;  // name of the private heap whose scope gave it, "(no name)"; empty: none
  bool is_in_use = false, was_at_peak = false;
  PinningBlock pins{};  // if it was asked for
};

[[nodiscard]] inline std::string heap_text(std::string_view name) { return std::string(name.empty() ? "(no name)" : name); }

struct LiveHeapProfile {
  std::string program;  // its file
  std::string maps;     // as in /proc
  std::int64_t time_ns = 0;
  std::uint64_t mean = 0;  // distance of samples; 0: off by now
  std::uint64_t sampled = 0, lost = 0;
  std::uint64_t free_bytes = 0;  // of slots on pages that have not gone back; if it was asked for
  std::vector<LiveSampledBlock> blocks;
  std::map<std::uint64_t, std::vector<std::uint64_t>>
      stacks;  // addresses, the innermost call first; of those that are known
};

struct LiveProfileAnswer {
  LiveRefusal refusal = LiveRefusal::kNone;
  std::uint32_t version = 0;  // the other version, for kOtherVersion
  LiveHeapProfile profile;    // the profile, for kNone
};

// `pins`: with what free memory the blocks keep. `patience`: for a process that changes it all the time.
[[nodiscard]] LiveProfileAnswer read_live_profile(pid_t pid, bool pins = false,
                                                  std::chrono::milliseconds patience = std::chrono::seconds(5));

// Switches the profile of a process that runs: some words of its memory are written (profile::ProfileRequest), and its next
// slow call of malloc does the rest.
enum class SwitchResult : std::uint8_t {
  kRefused,
  kDone,
  kAsked,        // it has taken no fresh memory since: as soon as it does
  kNotOn,        // of a stop: there is no profile, nor was one asked for
  kAnswered,     // it cannot: `answer` says why
  kMayNotClone,  // a filter of system calls was put on its one thread, which may end it for a second one
};

struct SwitchAnswer {
  SwitchResult result = SwitchResult::kRefused;
  LiveRefusal refusal = LiveRefusal::kNone;  // of kRefused
  std::uint32_t version = 0;                 // of kOtherVersion
  profile::ProfileAnswer answer = profile::ProfileAnswer::kNone;
};

// `distance`: of samples, bytes; 0: it stops.
[[nodiscard]] SwitchAnswer switch_profile(pid_t pid, std::uint64_t distance,
                                          std::chrono::milliseconds patience = std::chrono::seconds(2));

}  // namespace freehold::live
