// SPDX-License-Identifier: MIT
// One measurement of `freehold pools`: Job describes it, Report has its result. It runs in a fresh process (`freehold
// pools-worker`, the same executable) on one pool. The Job travels as command-line words, the Report as bytes.
#pragma once
#include <cstdint>
#include <string>
#include <tuple>

#include "cli/support/worker_group.hpp"

namespace freehold::cli::pools {

// Article 2's tests 1 to 3, then patterns of today's programs: slots released in random order, slots handed from producer to
// consumer, and the bare acquire/release pair. kCrc is article 1's experiment.
enum class Trial : std::uint8_t { kShort, kLong, kSingle, kRandom, kRing, kPair, kCrc };
inline constexpr Names<Trial, 7> kTests{{"short", "long", "single", "random", "ring", "pair", "crc"}};
[[nodiscard]] constexpr const auto& names_of(Trial) { return kTests; }
// The state of the pool when a test begins.
enum class Context : std::uint8_t { kFresh, kPolluted, kHalfUsed, kAlmostFull };
inline constexpr Names<Context, 4> kContexts{{"fresh", "polluted", "half", "full"}};
[[nodiscard]] constexpr const auto& names_of(Context) { return kContexts; }
using cli::name_of;

// These run on one thread, whatever --threads says.
[[nodiscard]] constexpr bool is_single_threaded(Trial test) { return test == Trial::kSingle || test == Trial::kPair; }
// These run in every context, the others in a fresh pool only.
[[nodiscard]] constexpr bool has_contexts(Trial test) { return test <= Trial::kSingle; }

struct Job {
  std::string pool;  // the name of a candidate
  Trial test = Trial::kShort;
  Context context = Context::kFresh;
  std::uint32_t threads = 1;
  std::uint64_t operations = 0;  // acquire/release pairs of each thread, if time allows
  std::uint32_t slot_bytes = 0;
  std::uint32_t milliseconds = 0;  // a thread that still works after this time ends with fewer operations
  std::uint32_t reads = 1;         // crc: buffers that a reader takes for each of a writer
  std::uint32_t shards = 0;        // that the slots are distributed over; 0: the strategy chooses
  bool counted = false;            // contention is counted, which costs time

  friend bool operator==(const Job&, const Job&) = default;
};

// Of the threads of crc.
[[nodiscard]] constexpr bool is_writer(std::uint32_t thread) { return thread % 2 == 0; }

struct Report {
  static constexpr std::uint64_t kMagic = 0x736c6f6f70303031;
  std::uint64_t magic = kMagic;
  GroupReport group;
  std::uint64_t operations = 0;  // acquire/release pairs of all threads
  std::uint64_t failures = 0;    // acquires that found no slot, and were repeated
  std::uint64_t counted = 0;     // acquires and releases that were counted
  std::uint64_t conflicts = 0;   // compare-exchanges repeated and locks waited for, among those
};

inline constexpr const char* kWorkerCommand = "pools-worker";

inline constexpr std::tuple kJobFields{&Job::pool,       &Job::test,         &Job::context, &Job::threads, &Job::operations,
                                       &Job::slot_bytes, &Job::milliseconds, &Job::reads,   &Job::shards,  &Job::counted};

}  // namespace freehold::cli::pools
