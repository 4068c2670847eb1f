// SPDX-License-Identifier: MIT
// Examines what a program holds: runs it as it is and under each treatment, round by round, while its mappings are watched,
// records it once with the probe, and draws the verdict. The counterpart of examination.hpp, which asks about time.
//
//   first run -> tools -> recorded run -> rounds -> verdict
//
// Prints nothing. One thread at a time, which must be able to wait for children.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tools/doctor/facts/settings.hpp"
#include "tools/doctor/run/program.hpp"
#include "tools/doctor/run/refusal.hpp"
#include "tools/doctor/verdict/memory_verdict.hpp"

namespace freehold::doctor {

struct MemoryTools {
  std::vector<MemoryVariant> variants;  // without the program as it is
  std::string name;                     // of the program as it is: "system", "its own"
  std::string probe;                    // the library that records; empty: none
  bool is_glibc = true;                 // the program's malloc
};

struct MemoryCaller {
  Host host;
  // `seconds_left`: 0: not known.
  std::function<void(const std::string& what, double seconds_left)> show;
  std::function<MemoryTools(const std::set<std::string>& files)> tools;  // `files`: that the program had mapped as code
  // Looks at the program under Freehold with its heap profile on, again and again, where holes between live blocks are what
  // most of the memory is; empty: nothing is to be looked at.
  std::function<void(pid_t)> look_at_pins{};
  std::function<int()> signal;  // that asks for an early end; 0: none
};

struct MemoryOutcome {
  MemoryExperiment experiment;
  MemoryVerdict verdict;
  std::vector<std::string> notes;     // what could not be done, in the end of a sentence
  std::vector<std::string> left_out;  // treatments that did not fit into the time
  int signal = 0;                     // that ended it early, or 0
};

// Uses the command, the input, the output, the effort, the server and the folder for recordings of `settings`. Throws
// Refused if the program cannot be examined.
[[nodiscard]] MemoryOutcome examine_memory(const Settings& settings, const std::string& program, const MemoryCaller& caller);

}  // namespace freehold::doctor
