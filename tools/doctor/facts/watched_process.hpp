// SPDX-License-Identifier: MIT
// The figures of a process that runs already, as they were seen from outside (run/attached.hpp).
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/doctor/facts/estimate.hpp"
#include "tools/live/stats.hpp"

namespace freehold::doctor {

struct AttachSettings {
  pid_t pid = 0;
  double seconds = 5;
  bool count_calls = false;  // by uprobes: each call of malloc then costs the process microseconds
};

struct HotFunction {
  std::string text;  // "parse(std::string const&) at parse.cpp:210"
  std::string kind;  // of AllocatorCode
  double share = 0;  // of the CPU time
};

// Something that could not be done.
struct AttachNote {
  enum class Kind : std::uint8_t {
    kCallsNotCounted,   // why
    kNotSampled,        // why
    kHardlyRan,         // children
    kKernelNotSampled,  // so that page faults in malloc are missing
    kSamplesLost,       // count
    kSleepersNotSeen,   // what its threads sleep in
  };
  Kind kind = Kind::kNotSampled;
  std::string why = {};
  std::uint64_t count = 0;
  std::vector<pid_t> children = {};  // that the process has started
};

struct Attached {
  AttachSettings settings;
  std::string command;     // as it was started
  double seconds = 0;      // that it was watched
  int signal = 0;          // that ended it early, or 0
  bool has_ended = false;  // the process ended while it was watched

  bool is_counted = false;  // these four lines were read twice; else it ended at once, and they say nothing
  unsigned threads = 0;     // at the end, or shortly before the process's
  double user_s = 0, system_s = 0;
  std::optional<double> waited_for_cpu_s;  // runnable, while others had its CPUs
  std::uint64_t voluntary_switches = 0, involuntary_switches = 0;
  std::uint64_t page_faults = 0;

  std::uint64_t resident_bytes = 0, anonymous_bytes = 0, huge_bytes = 0, swapped_bytes = 0, freehold_bytes = 0;

  std::string malloc_file;  // empty: unknown
  bool is_freehold = false;
  std::optional<live::LiveStats> held;  // by Freehold, at the end; none: see read_live_stats()
  std::vector<std::string> own_allocators;

  std::uint64_t samples = 0;
  // Shares of the CPU time; none: it could not be sampled.
  std::optional<Estimate> in_malloc, in_own_allocators, in_memory_calls;
  // Share of the threads' time asleep in a lock of the C library's own; none: it could not be looked at.
  std::optional<Estimate> asleep_in_malloc;
  std::vector<HotFunction> functions;
  std::optional<double> malloc_calls_per_s, own_calls_per_s;

  std::vector<AttachNote> notes;
};

}  // namespace freehold::doctor
