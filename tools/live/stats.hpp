// SPDX-License-Identifier: MIT
// The statistics of a process that runs under Freehold, read from its memory: the engine's figures, size classes, threads,
// private heaps, and pools that have a name. The process is neither stopped nor signalled, takes no lock and does not
// notice. One thread. Cost: some milliseconds, and a copy of the free bits of all spans (9 MB for each GiB of small blocks
// at most).
//
// Each number was true at its own moment; together they need not fit. Lists that change during a walk are read again, and
// after kTries times taken as they are.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/live/figures.hpp"
#include "tools/live/refusal.hpp"

namespace freehold::live {

struct LiveClass {
  std::uint64_t slot_bytes = 0;
  std::uint64_t spans = 0;
  std::uint64_t slots = 0;         // in those spans
  std::uint64_t free_slots = 0;    // in no cache
  std::uint64_t cached_slots = 0;  // in caches of threads; those of CPUs are not seen, and count as used
  std::uint64_t refills = 0, drains = 0;
  [[nodiscard]] bool saw_work() const { return spans != 0 || refills != 0; }
  [[nodiscard]] std::uint64_t used_slots() const {
    const std::uint64_t unused = free_slots + cached_slots;
    return slots > unused ? slots - unused : 0;
  }
};

struct LiveThread {
  std::int32_t thread = 0;  // the system's number, in the process's namespace; 0: unknown
  std::string name;         // as the system knows it
  std::uint64_t cached_bytes = 0;
  std::uint64_t granted_bytes = 0;  // that its arrays may hold
  std::uint64_t refills = 0, drains = 0, remote_frees = 0;
};

struct LiveHeapFigures {
  std::string name;
  std::uint64_t live_objects = 0, live_bytes = 0;
  std::uint64_t used_bytes = 0, held_bytes = 0;
  std::optional<std::uint64_t> limit_bytes;
  std::uint64_t slabs = 0, large_blocks = 0, conflicts = 0;
};

struct LivePoolFigures {
  std::string name;
  std::uint64_t slot_bytes = 0;
  std::optional<std::uint64_t> capacity;  // none: unlimited
  // Known if the pool's design tells: slots that were opened, and of these, those in use, in threads' arrays or on their
  // way.
  std::optional<std::uint64_t> opened_slots, taken_slots;
};

struct LiveStats {
  LiveFigures figures;
  std::uint64_t refills = 0, drains = 0, remote_frees = 0;  // counts of all threads, those that ended included
  std::vector<LiveClass> classes;                           // all, the smallest first
  std::vector<LiveThread> threads;
  std::vector<LiveHeapFigures> heaps;
  std::vector<LivePoolFigures> pools;
  std::optional<std::uint64_t> huge_page_bytes;  // of the process, as the kernel says; none: it does not
  bool lists_changed = false;                    // while they were read, each time
};

struct LiveAnswer {
  LiveRefusal refusal = LiveRefusal::kNone;
  std::uint32_t version = 0;  // the other version, for kOtherVersion
  LiveStats stats;            // the figures, for kNone
};

[[nodiscard]] LiveAnswer read_live_stats(pid_t pid);

}  // namespace freehold::live
