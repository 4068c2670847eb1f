// A process that runs already: what can be said of its allocator without a restart, from outside. Nothing of it is changed
// or stopped; when the time is over, or at Ctrl-C, it goes on as if nothing had been.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/support/interrupts.hpp"
#include "cli/support/machine.hpp"
#include "cli/support/progress.hpp"
#include "freehold/doctor/verdict.hpp"

namespace freehold::cli::doctor {

struct AttachSettings {
  pid_t pid = 0;
  double seconds = 5;
  bool count_calls = false;  // by uprobes: each call of malloc costs it microseconds meanwhile
};

struct HotFunction {
  std::string text;  // "parse(std::string const&) at parse.cpp:210"
  std::string kind;  // of AllocatorCode
  double share = 0;  // of the CPU time
};

struct Attached {
  AttachSettings settings;
  Machine machine;
  std::string date;        // UTC, ISO 8601
  std::string command;     // as it was started
  double seconds = 0;      // that it was watched
  int signal = 0;          // that ended it early, or 0
  bool has_ended = false;  // the process, meanwhile

  unsigned threads = 0;  // at the end
  double user_s = 0, system_s = 0;
  std::optional<double> waited_for_cpu_s;  // runnable, while others had its CPUs
  std::uint64_t voluntary_switches = 0, involuntary_switches = 0;
  std::uint64_t page_faults = 0;

  std::uint64_t resident_bytes = 0, anonymous_bytes = 0, huge_bytes = 0, swapped_bytes = 0, freehold_bytes = 0;

  std::string malloc_file;  // empty: unknown
  bool is_freehold = false;
  std::vector<std::string> own_allocators;

  std::uint64_t samples = 0;
  // Shares of the CPU time; none: it could not be sampled.
  std::optional<freehold::doctor::Estimate> in_malloc, in_own_allocators, in_memory_calls;
  // Share of the threads' time asleep in a lock of the C library's own; none: it could not be looked at.
  std::optional<freehold::doctor::Estimate> asleep_in_malloc;
  std::vector<HotFunction> functions;
  std::optional<double> malloc_calls_per_s, own_calls_per_s;

  std::vector<std::string> notes;  // what could not be done, and why
};

inline constexpr const char* kAttachedSchema = "freehold-doctor-attached/1";

// Throws Failure: no such process, not allowed.
[[nodiscard]] Attached attach(const AttachSettings& settings, Interrupts& interrupts, Progress& progress);
[[nodiscard]] std::string text_of(const Attached& attached);
[[nodiscard]] nlohmann::ordered_json json_of(const Attached& attached);

// What nobody can know from outside, sentences.
[[nodiscard]] std::vector<std::string> unknown_of(const Attached& attached);

}  // namespace freehold::cli::doctor
