// The vocabulary of the timers' experiment: what one measurement is, and what it yields. One measurement runs in a fresh
// process (freehold timers-worker, the same executable) on one structure; Job goes in as arguments, Report comes back as
// bytes.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/support/crew.hpp"

namespace freehold::cli::timers {

// Those of "Practical testing 30": timers are created, set (to random times within an hour, or each behind the one before)
// and handled; or created, set and all cancelled. The first two do it once in a process that has done nothing else, the
// kernel's page faults included; the next three again and again, in a heap that is worn. kRearm: of N armed timers one after
// the other, at random, is cancelled and set again. kShared: the same by several threads in one structure.
enum class Trial : std::uint8_t { kFreshRandom, kFreshAscending, kRandom, kAscending, kCancel, kRearm, kShared };
inline constexpr std::array kTests{Trial::kFreshRandom, Trial::kFreshAscending, Trial::kRandom, Trial::kAscending,
                                   Trial::kCancel,      Trial::kRearm,          Trial::kShared};
[[nodiscard]] constexpr bool is_fresh(Trial test) { return test <= Trial::kFreshAscending; }
// Timers come and go; else they stay.
[[nodiscard]] constexpr bool is_life(Trial test) { return test <= Trial::kCancel; }
// What other threads do meanwhile: there are none; they touch memory that is theirs; they allocate and free besides.
enum class Load : std::uint8_t { kAlone, kBusy, kHeap };
inline constexpr std::array kLoads{Load::kAlone, Load::kBusy, Load::kHeap};
// The parts of a test that are timed. kAll: their sum, by timer.
enum class Phase : std::uint8_t { kCreate, kSet, kCancel, kHandle, kRearm, kAll };
inline constexpr std::size_t kPhases = 5;  // without kAll

[[nodiscard]] std::string_view name_of(Trial test);
[[nodiscard]] std::string_view name_of(Load load);
[[nodiscard]] std::string_view name_of(Phase phase);
[[nodiscard]] std::optional<Trial> test_of(std::string_view name);
[[nodiscard]] std::optional<Load> load_of(std::string_view name);
// In their order; kAll at the end if there are several.
[[nodiscard]] const std::vector<Phase>& phases_of(Trial test);

struct Job {
  std::string structure;  // the name of a contender
  Trial test = Trial::kRandom;
  Load load = Load::kAlone;
  std::uint32_t timers = 0;
  std::uint32_t users = 1;         // threads that use the structure
  std::uint32_t background = 0;    // threads of the load
  std::uint32_t milliseconds = 0;  // of CPU time of each user, after which it ends

  friend bool operator==(const Job&, const Job&) = default;
};

// What a phase cost all users together.
struct Cost {
  std::uint64_t operations = 0;
  std::uint64_t cpu_ns = 0;   // of the users' threads
  std::uint64_t wall_ns = 0;  // of the slowest user
  std::uint64_t sleeps = 0;   // times that a user gave its CPU up: it waited for a lock, of the heap or of the structure
  std::uint64_t waits = 0;    // of those, for the lock of a structure of ours

  Cost& operator+=(const Cost& other) noexcept;
};

struct Report {
  static constexpr std::uint64_t kMagic = 0x736d697430303031;
  std::uint64_t magic = kMagic;
  CrewReport crew;
  std::array<Cost, kPhases> costs{};
  std::uint64_t background_operations = 0;  // of the load, while the users were timed
  char malloc_library[480] = {};            // the file that malloc came from
};

[[nodiscard]] std::vector<std::string> words_of(const Job& job);
// The inverse. Throws std::runtime_error.
[[nodiscard]] Job job_of(const std::vector<std::string>& words);

}  // namespace freehold::cli::timers
