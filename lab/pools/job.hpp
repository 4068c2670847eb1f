// SPDX-License-Identifier: MIT
// One measurement of `freehold pools`: Job describes it, Report has its result. It runs in a fresh process (`freehold
// pools-worker`, the same executable) on one pool, a candidate. The candidates are the strategies of the registry, pools of
// other libraries, and the baseline, which is the least work that any pool must do.
#pragma once
#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tools/support/worker_group.hpp"

namespace freehold::lab::pools {

// Article 2's tests 1 to 3, then patterns of today's programs: slots released in random order, slots handed from producer to
// consumer, and the bare acquire/release pair. kAlike and kMixed replace slots one after the other, the oldest or any, and
// show how far the pool scatters them. kCrc is article 1's experiment.
enum class Trial : std::uint8_t { kShort, kLong, kSingle, kRandom, kRing, kPair, kAlike, kMixed, kCrc };
inline constexpr Names<Trial, 9> kTests{{"short", "long", "single", "random", "ring", "pair", "alike", "mixed", "crc"}};
[[nodiscard]] constexpr const auto& names_of(Trial) { return kTests; }
// The state of the pool when a test begins.
enum class Context : std::uint8_t { kFresh, kPolluted, kHalfUsed, kAlmostFull };
inline constexpr Names<Context, 4> kContexts{{"fresh", "polluted", "half", "full"}};
[[nodiscard]] constexpr const auto& names_of(Context) { return kContexts; }
using tools::name_of;

[[nodiscard]] constexpr bool replaces(Trial test) { return test == Trial::kAlike || test == Trial::kMixed; }
// These run on one thread, whatever --threads says.
[[nodiscard]] constexpr bool is_single_threaded(Trial test) {
  return test == Trial::kSingle || test == Trial::kPair || replaces(test);
}
// These run in every context, the others in a fresh pool only.
[[nodiscard]] constexpr bool has_contexts(Trial test) { return test <= Trial::kSingle; }
// In crc every second thread writes.
[[nodiscard]] constexpr bool is_writer(std::uint32_t thread) { return thread % 2 == 0; }

// One line of the tables, in which the pools are compared.
struct Row {
  Trial test = Trial::kShort;
  Context context = Context::kFresh;
  std::uint32_t threads = 1;

  friend auto operator<=>(const Row&, const Row&) = default;
};
// "short, polluted"; "crc, 16 threads"
[[nodiscard]] std::string text_of(const Row& row);

struct Report : GroupReport {
  static constexpr std::uint64_t kMagic = 0x736c6f6f70303031;
  std::uint64_t magic = kMagic;
  std::uint64_t operations = 0;  // acquire/release pairs of all threads
  std::uint64_t failures = 0;    // acquires that found no slot, and were repeated
  std::uint64_t conflicts = 0;   // conflicts in a counted job: compare-exchanges repeated and locks waited for
  double scatter = 0;            // kAlike, kMixed: pages that the live slots lie in, for each that would hold them
};

struct Candidate;

// See lab/experiment/run.hpp.
struct Job {
  const Candidate* pool = nullptr;
  Trial test = Trial::kShort;
  Context context = Context::kFresh;
  std::uint32_t threads = 1;
  std::uint64_t operations = 0;  // acquire/release pairs of each thread, if time allows
  std::uint32_t slot_bytes = 0;
  // A thread that still works after this time ends with fewer operations; 0: no limit.
  std::uint32_t milliseconds = 0;
  std::uint32_t reads = 1;   // crc: buffers that a reader takes for each of a writer
  std::uint32_t shards = 0;  // that the slots are distributed over; 0: the strategy chooses
  bool counted = false;      // contention is counted, which costs time
  bool one_cpu = false;      // all threads share one CPU
  std::string library = {};

  static constexpr const char* kWorker = "pools-worker";
  [[nodiscard]] static auto members() {
    return std::tuple{&Job::pool,         &Job::test,  &Job::context, &Job::threads, &Job::operations, &Job::slot_bytes,
                      &Job::milliseconds, &Job::reads, &Job::shards,  &Job::counted, &Job::one_cpu};
  }
  [[nodiscard]] Row row() const { return {test, context, threads}; }
  [[nodiscard]] Row group() const { return row(); }
  [[nodiscard]] Report run() const;
  [[nodiscard]] std::chrono::seconds limit() const;
  [[nodiscard]] std::string complaint(const Report& report) const;
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::string place() const { return text_of(row()); }
  [[nodiscard]] std::string text() const;
  // Acquire/release pairs of all threads, unless time ends it before.
  [[nodiscard]] std::uint64_t wished_operations() const;
};

enum class Kind : std::uint8_t {
  kStrategy,  // a strategy of lab/strategies/registry.hpp
  kLibrary,   // a pool of another library
  kUnlocked,  // either of these, for one thread at a time
  kBaseline,  // not a pool: the cost of the least work that any pool must do
};
inline constexpr Names<Kind, 4> kKinds{{"strategy", "library", "unlocked", "baseline"}};
[[nodiscard]] constexpr const auto& names_of(Kind) { return kKinds; }

struct Candidate {
  std::string name;
  std::string source;
  Kind kind = Kind::kStrategy;
  bool distributed = false;  // over as many pools as a job says
  Report (*run)(const Job&) = nullptr;
  double (*bookkeeping)(std::uint32_t slot_bytes) = nullptr;  // bytes for a slot, at most; null: not known
};

// The strategy that is compared with all others: BestPool.
inline constexpr std::string_view kOurs = "best";
// The same for rows of one thread, in which pools without locks take part.
inline constexpr std::string_view kOursAlone = "single-thread";

// In the order of the tables.
[[nodiscard]] const std::vector<Candidate>& candidates();
[[nodiscard]] inline const std::vector<Candidate>& candidates_of(const Candidate*) { return candidates(); }
// True if the candidate takes part in the row. The baseline and the pools for one thread have limits.
[[nodiscard]] bool runs(const Candidate& candidate, const Row& row);

}  // namespace freehold::lab::pools
