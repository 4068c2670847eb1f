// SPDX-License-Identifier: MIT
// Where the sampled heap profile lies, for readers outside the process (`freehold heap snapshot`): they copy it from the
// process's memory while it runs, without stopping or signalling it. No allocation knows of them.
//
// A reader finds the profile by a directory of sync/live_list.hpp of the kind kProfile, whose `layout` is a LiveProfile. A
// copy of the table, or of a part of it, is as it was between two changes if the directory's number of changes
// (sync/change_count.hpp) was even before, and is the same afterwards. A program that allocates hard changes the table
// thousands of times a second: small parts are copied then, each as it was at its own moment. The log is append-only while
// LiveSums::peak_bytes does not change. Stacks never change (check/call_stacks.hpp).
//
// The layout is fixed for a version; `version` stays where it is for ever. Memory that is named here is never unmapped.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace freehold::profile {

inline constexpr std::uint32_t kLiveProfileVersion = 2;
inline constexpr std::uint64_t kDefaultMean = std::uint64_t{512} << 10;  // distance of samples, bytes

// The origin of a sampled block in one word: its call stack's number, and above that the number of the private heap's
// name whose scope gave it. 0: no heap.
inline constexpr unsigned kStackBits = 23;
inline constexpr std::uint32_t kHeapNames = std::uint32_t{1} << (32 - kStackBits);
[[nodiscard]] constexpr std::uint32_t stack_of(std::uint32_t origin) noexcept {
  return origin & ((std::uint32_t{1} << kStackBits) - 1);
}
[[nodiscard]] constexpr std::uint32_t heap_of(std::uint32_t origin) noexcept { return origin >> kStackBits; }

// A name is here once, for all heaps that had it, and stays when they end. The last entry stands for names that found no
// room.
struct LiveHeapName {
  char text[64];  // with its end; what is longer is cut
};

// A place of the table, as it is copied; SampleTable's own hold atomics.
struct LivePlace {
  std::uint64_t block;  // 0 and 1: there is no sample
  std::uint64_t bytes, size, mean;
  std::uint64_t birth;  // number of the sample, from 1
  std::uint32_t origin;
  // The slot that the block would have had if it were not sampled, or one that lies beside that in its thread's cache:
  // its place from the arena's begin on, in units of 16 bytes, and 1 more. 0: not known.
  std::uint32_t home;
};

// An entry of the log.
struct LiveSample {
  std::uint64_t block, bytes, size, mean;
  std::uint32_t origin, home;
};

struct LiveSums {
  std::uint64_t logged = 0;                      // entries of the log
  std::uint64_t live_bytes = 0, peak_bytes = 0;  // estimates
  std::uint64_t births = 0, peak_birth = 0;      // samples so far, and when most was in use
  std::uint64_t lost = 0;                        // samples that found no place
};

struct LiveProfile {
  std::uint32_t version, unused;
  std::uint64_t places, place_count;  // address of the table: so many LivePlace
  std::uint64_t log;                  // address of the LiveSample
  std::uint64_t sums;                 // address of the LiveSums
  std::uint64_t mean;                 // address of the distance of samples, 8 bytes; 0 there: off by now
  std::uint64_t stack_words;          // address of words of 8 bytes
  std::uint64_t used_stack_words;     // address of their number, 4 bytes
  std::uint64_t heap_names;           // address of kHeapNames LiveHeapName
};
// A request from outside (`freehold heap start` and `stop`) to begin or end the profile. The asker writes `distance`, then
// the lowest byte of `command`; so that a slow call comes by soon, it makes the engine's kUntilLook 0. The process answers,
// and then withdraws the command. Relaxed, but the command.
enum class ProfileCommand : std::uint64_t { kNone, kStart, kStop };
enum class ProfileAnswer : std::uint64_t {
  kNone,
  kDone,
  kChecked,    // checked mode: before anybody asks
  kConfined,   // the process has announced a filter of system calls, before it could load the unwinder
  kNoThreads,  // FREEHOLD_BACKGROUND_THREAD=off, or setuid: there may be no thread, which is needed to load it
  kNoThread,   // the system refuses one
  kNoMemory
};
struct ProfileRequest {
  std::atomic<ProfileCommand> command{ProfileCommand::kNone};
  std::atomic<ProfileAnswer> answer{ProfileAnswer::kNone};
  std::atomic<std::uint64_t> distance{0};
};
static_assert(sizeof(ProfileRequest) == 24 && offsetof(ProfileRequest, distance) == 16);

static_assert(sizeof(LivePlace) == 48 && sizeof(LiveSample) == 40 && sizeof(LiveSums) == 48 && sizeof(LiveProfile) == 72);
static_assert(offsetof(LivePlace, origin) == 40 && offsetof(LiveSample, origin) == 32);

}  // namespace freehold::profile
