// SPDX-License-Identifier: MIT
// Runs a program to its end, once or as several copies at the same time, and says what that took. A run leaves nothing
// behind: the program has its own process group, and what is left of it, or ran away from it, is killed.
//
// One thread at a time, which must be able to wait for children: SIGCHLD not ignored. Cost beside the program's: a look at
// /proc every 50 ms, one hundredth of a CPU at most.
#pragma once
#include <signal.h>

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tools/doctor/facts/code_growth.hpp"
#include "tools/doctor/facts/memory_snapshot.hpp"
#include "tools/doctor/facts/trial.hpp"

namespace freehold::doctor {

struct Command {
  std::string file;                    // to be executed; has a slash
  std::vector<std::string> arguments;  // argv
  std::string input = "/dev/null";     // its standard input
  bool keep_output = false;            // for Run::output
  bool sample_code = false;            // for Run::code; slows it down by a twentieth
  bool watch_memory = false;           // for Run::memory
  std::function<void(pid_t)> look{};   // at the program, as often as its memory
  bool before_others = false;          // at nice -20
  bool real_time = false;              // see precedence.hpp
};

// A run gets these beside what the caller's own environment says.
struct LaunchOptions {
  std::vector<std::string> preload;                                   // libraries before the program's own, first one first
  std::vector<std::pair<std::string, std::string>> environment = {};  // set for the program alone
  std::vector<unsigned> cpus = {};                                    // that it may use; empty: all that the caller may
};

// The runs of one caller have this in common.
struct Host {
  sigset_t mask{};   // of signals, for the program
  int stop_fd = -1;  // readable: end the run at once; -1: nothing does
};

enum class Ending : std::uint8_t {
  kEnded,      // by itself, or by SIGTERM when its time to serve was over
  kOutOfTime,  // did not end by itself
  kStopped,    // by the host
  kNotStarted,
  kNotReady,    // did not become ready to serve in time
  kEndedEarly,  // before its load had ended
  kLoadFailed,  // the load's exit code was not 0
};

struct Run {
  Ending ending = Ending::kEnded;
  Trial trial;
  std::string why;                     // kNotStarted, kLoadFailed: in words
  std::string last_words;              // what it wrote to standard error last
  std::string output;                  // standard output of the load, or of a program whose output is kept: its end
  unsigned most_threads = 0;           // that it had at once, 0: not seen
  double quota_cpus = 0;               // that its control groups allowed it, 0: no limit
  std::set<std::string> files;         // that it had mapped as code; empty: not seen
  CodeSamples code;                    // where its CPU time went, if that was asked for and permitted
  std::vector<MemorySnapshot> memory;  // what it held, if that was asked for
  double hidden_share = 0;             // of the looks at that: the program did not let them in
  double hidden_child_share = 0;       // or a child of it did not
  unsigned left_processes = 0;         // that ran on when it had ended by itself, if what it held was asked for
};

// Runs it once. `seconds`: the deadline.
[[nodiscard]] Run run(const Command& command, const LaunchOptions& options, double seconds, const Host& host);

// Runs as many copies at the same time as there are `copies`. The trial is the mean of all, except the wall time, which is
// the longest. The first that fails decides how it ended.
[[nodiscard]] Run run_copies(const Command& command, std::span<const LaunchOptions> copies, double seconds,
                             const Host& host);

// A program that serves. Shell commands; empty: none.
struct Service {
  std::string ready;   // succeeds once the program serves; empty: it listens
  std::string load;    // uses it; the time that it takes is the trial's wall time
  double seconds = 0;  // after that load and program are ended; 0: when the load has ended
};

// Starts it, waits until it serves, loads it, ends it by SIGTERM. `seconds`: the deadline for all of that.
[[nodiscard]] Run run_service(const Command& command, const LaunchOptions& options, const Service& service, double seconds,
                              const Host& host);

// "exit code 3", "SIGSEGV", "no end after 12 s"; empty: it ended with exit code 0.
[[nodiscard]] std::string failure_of(const Run& run, double seconds);

// The CPUs of the caller's affinity mask, one of each core before the second ones of any.
[[nodiscard]] std::vector<unsigned> cpus_in_order();

// The memory that is left for a run: by MemAvailable, and by the limits of the caller's control groups.
[[nodiscard]] std::uint64_t available_bytes();

}  // namespace freehold::doctor
