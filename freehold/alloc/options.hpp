// SPDX-License-Identifier: MIT
// The one table of what the environment may change, or a string that is compiled into the program (freehold_options in
// freehold.h); the environment wins. Read once, before the first block; a value that makes no sense is reported on standard
// error in one line, and the default stands. Setuid programs ignore the environment.
#pragma once
#include <cstddef>
#include <cstdint>

#include "freehold/alloc/arena.hpp"
#include "freehold/alloc/profile.hpp"
#include "freehold/check/settings.hpp"

namespace freehold::alloc {

enum class CacheMode : std::uint8_t { kThread, kCpu, kAuto };
enum class BackgroundThread : std::uint8_t { kOff, kAuto, kOn };

struct Options {
  std::uint64_t purge_delay_ms = 500;       // FREEHOLD_PURGE_DELAY_MS: free memory goes back after this
  HugePages huge_pages = HugePages::kAuto;  // FREEHOLD_HUGE_PAGES=off|auto|on
  CacheMode cache = CacheMode::kAuto;       // FREEHOLD_CACHE=thread|cpu|auto
  std::size_t cache_bytes = 0;              // FREEHOLD_CACHE_BYTES: all caches beyond their minimum; 0: by the CPUs
  BackgroundThread background_thread = BackgroundThread::kAuto;  // FREEHOLD_BACKGROUND_THREAD=off|auto|on
  std::uint64_t limit_bytes = 0;    // FREEHOLD_LIMIT_BYTES: of blocks and what is kept for them; 0: none
  bool limit_warning = true;        // FREEHOLD_LIMIT_WARNING=0: no line when the kernel's limit is near
  char cgroup[512] = {};            // FREEHOLD_CGROUP: the folder whose limit counts; off: none; empty: those of the process
  bool prefault = false;            // FREEHOLD_PREFAULT=1: memory is resident before it is handed out
  bool verbose = false;             // FREEHOLD_VERBOSE=1: one line at the start
  bool live = false;                // FREEHOLD_LIVE=1: Yama keeps nobody of the same user out
  check::Settings check;            // FREEHOLD_CHECK=1 and FREEHOLD_CHECK_...: freehold/check/settings.hpp
  std::uint64_t guard_rate = 0;     // FREEHOLD_GUARD_RATE: one allocation in so many gets a page of its own; 0: none
  std::uint64_t profile_bytes = 0;  // FREEHOLD_PROFILE: mean distance of samples of the heap profile; 1: the default; 0: off
  char profile_file[kMostPathBytes] = {};  // FREEHOLD_PROFILE_FILE: where it goes at exit; %p: the process's number
  int stats_fd = -1;                       // FREEHOLD_STATS_FD, with FREEHOLD_STATS_PID: where the stats go at exit
};

[[nodiscard]] Options read_options() noexcept;
// Whether an option is set that wants call stacks, for which the loader may be needed. Complains of nothing.
[[nodiscard]] bool options_want_call_stacks() noexcept;

}  // namespace freehold::alloc
