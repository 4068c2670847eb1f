// SPDX-License-Identifier: MIT
// One measurement of `freehold timers`: Job describes it, Report has its result. It runs in a fresh process (`freehold
// timers-worker`, the same executable) on one structure, a candidate. The candidates are the article's queue on several
// heaps, its successors, timers of other libraries, and the baseline, which has the memory of the timers but no timers.
#pragma once
#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tools/support/worker_group.hpp"

namespace freehold::lab::timers {

// The first five are the tests of "Practical testing 30". A test creates timers, sets them (to random times within an hour,
// or to ascending times) and handles them; kCancel cancels them all instead. The two fresh tests do this once in a new
// process, page faults included; the next three repeat it in a heap that has been used. kRearm: N timers are armed; the test
// cancels one of them at random and sets it again, over and over. kShared: several threads do that in one structure.
enum class Trial : std::uint8_t { kFreshRandom, kFreshAscending, kRandom, kAscending, kCancel, kRearm, kShared };
inline constexpr Names<Trial, 7> kTests{
    {"fresh-random", "fresh-ascending", "random", "ascending", "cancel", "rearm", "shared"}};
[[nodiscard]] constexpr const auto& names_of(Trial) { return kTests; }
[[nodiscard]] constexpr bool is_fresh(Trial test) { return test <= Trial::kFreshAscending; }
// Timers are created and destroyed all the time; in the other tests they stay.
[[nodiscard]] constexpr bool is_life(Trial test) { return test <= Trial::kCancel; }
// The work of other threads during the test: there are no others; they touch their own memory; they allocate and free.
enum class Load : std::uint8_t { kAlone, kBusy, kHeap };
inline constexpr Names<Load, 3> kLoads{{"alone", "busy", "heap"}};
[[nodiscard]] constexpr const auto& names_of(Load) { return kLoads; }
// The parts of a test that are timed. kAll: their sum, per timer.
enum class Phase : std::uint8_t { kCreate, kSet, kCancel, kHandle, kRearm, kAll };
inline constexpr std::size_t kPhases = 5;  // without kAll
inline constexpr Names<Phase, kPhases + 1> kPhaseNames{{"create", "set", "cancel", "handle", "set-then-cancel", "all"}};
[[nodiscard]] constexpr const auto& names_of(Phase) { return kPhaseNames; }
using tools::name_of;

// In their order; kAll at the end if there are several.
[[nodiscard]] const std::vector<Phase>& phases_of(Trial test);

// One line of the tables, in which the structures are compared.
struct Row {
  Trial test = Trial::kRandom;
  std::uint32_t timers = 0;
  std::uint32_t users = 1;

  friend auto operator<=>(const Row&, const Row&) = default;
};
// "random, 100000"; "shared, 100000, 4 users"
[[nodiscard]] std::string text_of(const Row& row);

// The cost of a phase for all users together.
struct Cost {
  std::uint64_t operations = 0;
  std::uint64_t cpu_ns = 0;   // CPU time of the users' threads
  std::uint64_t wall_ns = 0;  // time of the slowest user
  std::uint64_t sleeps = 0;   // times that a user gave up its CPU to wait for a lock, of the heap or of the structure
  std::uint64_t waits = 0;    // sleeps among those for the lock of a structure of ours

  Cost& operator+=(const Cost& other) noexcept;
};

struct Report : GroupReport {
  static constexpr std::uint64_t kMagic = 0x736d697430303031;
  std::uint64_t magic = kMagic;
  std::array<Cost, kPhases> costs{};
  std::uint64_t background_operations = 0;  // the load's operations, while the users were timed
  char malloc_library[480] = {};            // the file that malloc came from
};

struct Candidate;

// See lab/experiment/run.hpp.
struct Job {
  const Candidate* structure = nullptr;
  Trial test = Trial::kRandom;
  Load load = Load::kAlone;
  std::uint32_t timers = 0;
  std::uint32_t users = 1;         // threads that use the structure
  std::uint32_t background = 0;    // threads of the load
  std::uint32_t milliseconds = 0;  // CPU time of each user, after which it ends
  std::string library = {};

  static constexpr const char* kWorker = "timers-worker";
  [[nodiscard]] static auto members() {
    return std::tuple{&Job::structure, &Job::test,       &Job::load,        &Job::timers,
                      &Job::users,     &Job::background, &Job::milliseconds};
  }
  [[nodiscard]] Row row() const { return {test, timers, users}; }
  [[nodiscard]] Row group() const { return row(); }
  [[nodiscard]] Report run() const;
  [[nodiscard]] std::chrono::seconds limit() const;
  [[nodiscard]] std::string complaint(const Report& report) const;
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::string place() const;
  [[nodiscard]] std::string text() const;
};

enum class Kind : std::uint8_t {
  kOurs,
  kLibrary,   // a structure of another library
  kBaseline,  // no timers, only the cost of the memory that any structure has for each; in rearm only
};
inline constexpr Names<Kind, 3> kKinds{{"ours", "library", "baseline"}};
[[nodiscard]] constexpr const auto& names_of(Kind) { return kKinds; }

struct Candidate {
  std::string name;
  std::string source;
  Kind kind = Kind::kOurs;
  bool preloads_freehold = false;              // Freehold is the program's heap
  Report (*run)(const Job&) = nullptr;         // one thread uses it; null: only for several
  Report (*run_shared)(const Job&) = nullptr;  // any thread may use it; null: it cannot be shared
};

// The article's two structures, on the system's heap and on a private one. The queue is the reference of the ratios.
inline constexpr std::string_view kArticlesQueue = "article";
inline constexpr std::string_view kArticlesPool = "article-pool-resource";
inline constexpr std::string_view kArticlesMspace = "article-mspace";
inline constexpr std::string_view kArticlesContainers = "article-containers";
inline constexpr std::string_view kArticlesContainersWheel = "article-wheel-containers";
inline constexpr std::string_view kArticlesPrivate = "article-private";
inline constexpr std::string_view kArticlesScopes = "article-scopes";
inline constexpr std::string_view kArticlesWheel = "article-wheel";
inline constexpr std::string_view kArticlesPrivateWheel = "article-wheel-private";
inline constexpr std::string_view kQueue = "queue";
inline constexpr std::string_view kWheel = "wheel";
inline constexpr std::string_view kBaseline = "baseline";

// In the order of the tables.
[[nodiscard]] const std::vector<Candidate>& candidates();
[[nodiscard]] inline const std::vector<Candidate>& candidates_of(const Candidate*) { return candidates(); }
// True if it takes part in the test.
[[nodiscard]] bool runs(const Candidate& candidate, Trial test);

}  // namespace freehold::lab::timers
