// SPDX-License-Identifier: MIT
// An experiment: the program under each treatment in each setting, and the cost of each trial. It compares allocators,
// numbers of CPUs, and threads with processes. Pure data: run/examination.hpp fills it, verdict.hpp says what it means.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/doctor/facts/code_growth.hpp"
#include "tools/doctor/facts/trial.hpp"

namespace freehold::doctor {

// A treatment stands in for the program's allocator. Each is a question: would this mend it?
enum class Treatment : std::uint8_t {
  kNone,          // the program as it is
  kCappedArenas,  // glibc's malloc with few arenas (MALLOC_ARENA_MAX)
  kPadded,        // the program's malloc, a cache line longer for each block, so that no two share one
  kFreehold,
  kPeer,            // another library
  kHighThresholds,  // glibc's malloc that keeps what it would give back (MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_)
};

struct Variant {
  Treatment treatment = Treatment::kNone;
  std::string name;  // "system", "glibc, 2 arenas", "padded", "freehold", "jemalloc"
  std::vector<std::string> preload;
  std::vector<std::pair<std::string, std::string>> environment = {};
};

// The way in which the program is made to use more or fewer CPUs.
enum class ParallelismControl : std::uint8_t {
  kAffinity,     // the CPUs that it may use; it starts as many threads as it likes
  kEnvironment,  // an environment variable that says how many threads it starts
  kArgument,     // an argument with {n}
};

// A point of the sweep: `copies` processes of `threads` threads each.
struct Setting {
  unsigned threads = 0;  // 0: the program's own choice
  unsigned cpus = 1;     // CPUs of each copy
  unsigned copies = 1;   // processes at the same time, each on separate CPUs

  // Returns the CPUs that it can use at best: no more than it has threads for, where that is known.
  [[nodiscard]] unsigned width() const noexcept { return threads != 0 && threads < cpus ? threads : cpus; }
  friend bool operator==(const Setting&, const Setting&) = default;
};

struct Cell {
  std::size_t variant = 0;
  Setting setting;
  std::vector<Trial> trials;  // runs that ended well; a run of copies is one trial: the mean of them, with the
                              // longest wall time
  std::string failure;        // how a run ended otherwise, in words: exit code 3, SIGSEGV; empty: none did
};

// The program as it is in the sweep's last setting, but each call of malloc and free takes so much longer.
struct Delayed {
  double delay_s = 0;
  std::vector<Trial> trials;
};

// The machine's own share in a loss: processes that share nothing, measured beside the trials: the time of one copy among as
// many as there are CPUs, divided by that of one alone. 1: perfect.
struct Control {
  double compute = 1;  // ratio for arithmetic alone
  double memory = 1;   // ratio for streaming through memory
};

struct Experiment {
  ParallelismControl parallelism = ParallelismControl::kAffinity;
  unsigned machine_cpus = 1;                    // CPUs that the caller may use, by affinity and quota
  double quota_cpus = 0;                        // CPUs that control groups allow; 0: no limit
  unsigned affinity_cpus = 1;                   // CPUs that the affinity mask allows
  unsigned online_cpus = 1;                     // CPUs that the machine has
  unsigned own_cpus = 0;                        // CPUs that the program allowed itself while it ran; 0: not seen
  unsigned most_threads = 0;                    // threads that it had at once; 0: not seen
  std::optional<double> own_malloc_share = {};  // share of the allocations that no preloaded malloc reaches; none: not known
  bool work_grows = false;        // each thread brings its own work: time stays the same when it scales. Else all share one
  bool work_is_guessed = false;   // work_grows rests on CPU time alone, which threads that spin or share lines need as well
  std::vector<Variant> variants;  // the program as it is comes first
  std::vector<Cell> cells;
  std::vector<Delayed> delayed;  // sorted: the shortest delay first
  std::vector<Trial> crowded;    // the program as it is with the most threads, all on one CPU
  Control control;
  CodeGrowth code;            // where the CPU time goes that comes with more threads; not known: it was not sampled
  bool can_be_copied = true;  // false: a server, of which no two can listen at one address
  bool complete = true;       // false: it was interrupted, or time ran out
  unsigned looks = 1;         // verdicts, this one included, any of which could have ended the trials: they share one error

  // Says whether it bound its threads to fewer CPUs than it was given.
  [[nodiscard]] bool is_bound() const noexcept { return own_cpus > 0 && own_cpus < affinity_cpus; }
  [[nodiscard]] const Cell* find(std::size_t variant, const Setting& setting) const noexcept;
  [[nodiscard]] const Variant* find(Treatment treatment) const noexcept;
  // Returns the settings with one copy, fewest CPUs first.
  [[nodiscard]] std::vector<Setting> sweep() const;
};

[[nodiscard]] std::string_view name_of(Treatment treatment) noexcept;
[[nodiscard]] std::string_view name_of(ParallelismControl parallelism) noexcept;

}  // namespace freehold::doctor
