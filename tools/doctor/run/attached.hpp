// SPDX-License-Identifier: MIT
// A process that runs already, watched from outside: its CPU time in malloc and free, what its threads sleep in, its memory.
// Nothing of it is changed or stopped; it goes on when the time is over. Prints nothing: the caller turns notes and refusals
// into sentences. One thread. Cost: about one hundredth of a CPU for each busy thread.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/doctor/verdict/verdict.hpp"
#include "tools/live/figures.hpp"

namespace freehold::doctor {

struct AttachSettings {
  pid_t pid = 0;
  double seconds = 5;
  bool count_calls = false;  // by uprobes: each call of malloc costs the process microseconds meanwhile
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
  bool has_ended = false;  // the process, meanwhile

  bool is_counted = false;  // these four lines were read twice; else it ended at once, and they say nothing
  unsigned threads = 0;     // at the end, or shortly before the process's
  double user_s = 0, system_s = 0;
  std::optional<double> waited_for_cpu_s;  // runnable, while others had its CPUs
  std::uint64_t voluntary_switches = 0, involuntary_switches = 0;
  std::uint64_t page_faults = 0;

  std::uint64_t resident_bytes = 0, anonymous_bytes = 0, huge_bytes = 0, swapped_bytes = 0, freehold_bytes = 0;

  std::string malloc_file;  // empty: unknown
  bool is_freehold = false;
  std::optional<live::LiveFigures> held;  // by Freehold, at the end; none: see read_live_figures()
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

struct AttachCaller {
  int stop_fd = -1;                     // readable: end the watching
  std::function<int()> signal;          // that asks for an early end; 0: none
  std::function<void()> show_watching;  // before the process is watched
  std::function<void()> show_naming;    // before names are looked up
};

// Pre: live::refusal_of(settings.pid) == live::LiveRefusal::kNone, and it is another process.
[[nodiscard]] Attached attach(const AttachSettings& settings, const AttachCaller& caller);

}  // namespace freehold::doctor
