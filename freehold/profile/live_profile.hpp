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
#include <cstddef>
#include <cstdint>

namespace freehold::profile {

inline constexpr std::uint32_t kLiveProfileVersion = 1;

// A place of the table, as it is copied; SampleTable's own hold atomics.
struct LivePlace {
  std::uint64_t block;  // 0 and 1: there is no sample
  std::uint64_t bytes, size, mean;
  std::uint64_t birth;  // number of the sample, from 1
  std::uint32_t stack, unused;
};

// An entry of the log.
struct LiveSample {
  std::uint64_t block, bytes, size, mean;
  std::uint32_t stack, unused;
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
};
static_assert(sizeof(LivePlace) == 48 && sizeof(LiveSample) == 40 && sizeof(LiveSums) == 48 && sizeof(LiveProfile) == 64);
static_assert(offsetof(LivePlace, stack) == 40 && offsetof(LiveSample, stack) == 32);

}  // namespace freehold::profile
