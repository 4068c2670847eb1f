// Everything that one `freehold doctor` found out, and what it was asked: the terminal's summary, the JSON and the page are
// three views of it. Plain data; filled once by the experiment, then only read.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/support/machine.hpp"
#include "freehold/doctor/experiment.hpp"
#include "freehold/doctor/symbols.hpp"
#include "freehold/doctor/verdict.hpp"

namespace freehold::cli::replay {
struct Advice;
}
namespace freehold::doctor {
struct Profile;
}

namespace freehold::cli::doctor {

// Whether more threads share the same work or bring work of their own.
enum class Work : std::uint8_t { kAuto, kFixed, kPerThread };

// A program that serves until it is told to end.
struct Server {
  double seconds = 0;        // that it runs after it is ready: --for; 0: it ends by itself, or with its load
  std::string load;          // shell command that uses it; empty: none
  std::string ready;         // shell command that succeeds once it serves; empty: it listens, or ready_after_s is over
  double ready_after_s = 0;  // 0: not given
  std::string throughput;    // regular expression: its first group in the load's output is units a second; empty: none
  bool used() const noexcept { return seconds > 0 || !load.empty(); }
};

// What was asked for.
struct Settings {
  std::vector<std::string> command;  // the program as typed, and its arguments; an argument may hold {n}
  freehold::doctor::Knob knob = freehold::doctor::Knob::kAffinity;
  std::string knob_text;         // OMP_NUM_THREADS, or "-t {n}"; empty for affinity
  std::vector<unsigned> widths;  // the sweep: threads, or CPUs for affinity; ascending
  Work work = Work::kAuto;
  double budget_s = 0;  // time for all runs; 0: `rounds` decides
  unsigned rounds = 0;  // of --repeat; 0: the budget decides
  std::string input;    // file for standard input; empty: /dev/null
  bool show_output = false;
  bool allow_failure = false;
  std::string keep_recording;  // folder; empty: recordings are removed
  Server server;
};

// How to do by hand what the doctor did.
struct Repetition {
  std::string what;   // "freehold, 2 CPUs"
  std::string shell;  // "env LD_PRELOAD=/usr/lib/libfreehold.so taskset -c 0,1 ./prog --size 3"
};

// An allocator that the program brings along: linked in, or a part of its language's runtime.
struct OwnAllocator {
  std::string name;                           // "jemalloc", "CPython's allocator"
  std::string file;                           // that has it
  std::string use_malloc;                     // "PYTHONMALLOC=malloc": the variable that leaves all to malloc; empty: none
  std::optional<double> reached;              // share of all the program's allocations that arrive at a preloaded malloc
  std::optional<std::uint64_t> calls;         // of its own functions, while it was counted
  std::optional<std::uint64_t> malloc_calls;  // of the C library's, at the same time
  std::string why_not_counted;                // empty: it was, or there are no calls that could be
};

struct Diagnosis {
  Settings settings;
  std::string program;   // the file that was run
  bool example = false;  // the bundled one
  Machine machine;
  std::string date;    // UTC, ISO 8601
  double seconds = 0;  // that it all took
  int signal = 0;      // that ended it early, or 0

  freehold::doctor::Experiment experiment;
  // Of the program as it is, in the sweep's last setting and in its first; null: there is none, and a note says why.
  std::shared_ptr<const freehold::doctor::Attribution> recorded, recorded_alone;
  // The runs that were recorded, for what recording costs: to be compared with the same cell's.
  std::optional<freehold::doctor::Trial> recorded_trial, recorded_alone_trial;
  // Where its threads spin, or write lines that others write: the hottest of these instructions; none: not seen.
  std::optional<freehold::doctor::Frame> spins_at, contended_at;
  // What pools and heaps would do for the hottest sites of one size; null: nothing was recorded.
  std::shared_ptr<const replay::Advice> advice;
  std::shared_ptr<const freehold::doctor::Profile> profile;  // of the first; null: the same
  freehold::doctor::Verdict verdict;
  std::vector<OwnAllocator> own_allocators;

  std::vector<std::string> notes;  // sentences: what could not be done, and why
  std::vector<Repetition> repetitions;
};

// What recording added to the program's time, as a share of it: 0.06. None: nothing to compare.
[[nodiscard]] std::optional<double> recording_cost(const Diagnosis& diagnosis);
// "freehold, 2 threads", "system, 4 copies on one CPU each"
[[nodiscard]] std::string describe(const freehold::doctor::Experiment& experiment, std::size_t variant,
                                   const freehold::doctor::Setting& setting);
// "2 threads", "2 CPUs", "4 copies"
[[nodiscard]] std::string describe(const freehold::doctor::Setting& setting);

}  // namespace freehold::cli::doctor
