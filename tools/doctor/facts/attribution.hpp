// SPDX-License-Identifier: MIT
// The meaning of a recording: how much of a program's time goes to its allocator, where from, and what else it waits for.
//
// The probe samples, and each sample stands for `weight` calls, so that everything here is an estimate. Shares are of the
// program without the probe: the cost of recording is taken off first. Time inside malloc and free has three parts: running
// (cpu), blocked (asleep by itself, behind a lock or a page fault), and preempted, which counts nowhere.
//
// The allocator causes false sharing if threads that have nothing else in common use one line. A block's users are the
// thread that allocated it and the thread that freed it, as far as a recording shows. One thread's blocks side by side are
// therefore no hazard and are not counted, nor is a block beside one that was handed over to the same thread. The thread
// that allocates a block writes it at least once; an allocation log does not show whether it is written often. So two
// figures are kept: the share of such lines, which costs each allocation something, and the lines on which such blocks lived
// together for long, where a program that writes them pays all the time.
//
// Pure functions of their arguments, no output format. One thread. Cost: O(samples × log) and the names of each stack once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/doctor/facts/call_sites.hpp"
#include "tools/doctor/facts/recording.hpp"
#include "tools/doctor/facts/symbols.hpp"

namespace freehold::doctor {

// The time of calls, estimated from samples.
struct CallTime {
  double calls = 0;
  double cpu_s = 0;        // CPU time that threads run inside
  double blocked_s = 0;    // time that threads sleep inside, of their own accord
  double cpu_s_error = 0;  // standard error of cpu_s; blocked_s_error is that of blocked_s
  double blocked_s_error = 0;

  [[nodiscard]] double mean_ns() const { return calls > 0 ? cpu_s / calls * 1e9 : 0; }
};

struct AllocationSite {
  Place place;
  CallTime time;  // what its allocations take
  double time_share =
      0;             // of the allocator's CPU and blocked time: its allocations, and of all frees as many as its blocks'
  double bytes = 0;  // sum of its allocations
  double freed_elsewhere = 0;               // share of its blocks' ends by another thread
  double typical_bytes = 0;                 // median size
  bool fixed_size = false;                  // all samples, and at least kSamplesOfFixedSize, were of typical_bytes
  std::optional<double> median_lifetime_s;  // none: most of its blocks live on
  double live_bytes_at_peak = 0;            // what its blocks held when the program held most
  std::size_t samples = 0;
};
inline constexpr std::size_t kSamplesOfFixedSize = 8;

// The time that a program waits in its own calls: locks (mutex, rwlock, spin) or idleness (condition variables, semaphores).
struct WaitSite {
  Place place;
  WaitKind kind{};
  double count = 0;
  double seconds = 0;
  double share = 0;  // share of the threads' time
};

struct SizeBin {
  std::uint64_t most_bytes = 0;  // power of two; the bin has the sizes above half of it
  double allocations = 0, bytes = 0;
};
struct LifetimeBin {
  double most_s = 0;  // power of ten; the bin has the lifetimes above a tenth of it
  double blocks = 0;
};
struct TimePoint {
  double at_s = 0;  // end of the interval
  double live_bytes = 0;
  double allocations_per_s = 0;
};

// Frees, at one place, of blocks that other threads allocated at a site.
struct RemoteSites {
  std::size_t site = 0;  // index into Attribution::sites
  Place freed_at;
  double frees = 0;
  double share = 0;  // share of all frees by another thread
};
struct RemoteThreads {
  std::uint32_t from = 0, to = 0;  // the threads that allocated and freed, by the system's ids
  double frees = 0;
  double share = 0;  // share of all frees by another thread
};
struct SharingSites {
  Place places[2];  // the two may be one place
  std::uint64_t bytes[2] = {};
  std::uint64_t lines = 0;
  std::uint64_t lines_for_long = 0;
};

struct Attribution {
  std::size_t processes = 0;
  std::size_t threads = 0;
  double seconds = 0;         // wall time from the first to the last record of all processes
  double cpu_s = 0;           // CPU time of all threads, without the probe's own
  double thread_s = 0;        // sum of the threads' lives, which waits are shares of
  std::uint64_t dropped = 0;  // number of records that found no room
  std::size_t samples = 0;

  double probe_share = 0;   // the probe's share of all CPU time while it recorded
  double mapped_bytes = 0;  // bytes that the program or a library mapped itself, by mmap() and the like
  double mapping_s = 0;     // part of thread_s that those calls and munmap() take, running or waiting

  CallTime allocating, freeing;
  double allocations_per_s = 0, frees_per_s = 0;  // per second of wall time
  double cpu_share = 0;                           // share of cpu_s that is spent inside malloc and free
  double cpu_share_error = 0;
  double blocked_share = 0;  // share of thread_s that is slept below malloc and free
  double blocked_share_error = 0;

  double lock_wait_s = 0, lock_wait_share = 0;   // waits for the program's own locks, and their share of thread_s
  double idle_s = 0, idle_share = 0;             // waits in condition variables and semaphores
  std::vector<WaitSite> lock_waits, idle_waits;  // sorted: the longest first

  std::vector<SizeBin> sizes;          // sorted ascending; no bin is empty
  std::vector<LifetimeBin> lifetimes;  // the same of blocks whose end would have been seen
  double live_at_exit = 0;             // number of blocks that had not ended

  std::vector<TimePoint> history;  // at most kHistoryPoints, sorted ascending
  double peak_live_bytes = 0;
  double live_bytes_at_end = 0;

  double remote_share = 0;                    // share of the ends that were seen that another thread made
  std::vector<RemoteSites> remote_sites;      // sorted: the most first; at most kTopRows
  std::vector<RemoteThreads> remote_threads;  // the same

  std::uint64_t lines_watched = 0;
  std::uint64_t lines_shared = 0;  // number of these whose blocks have different users
  double shared_line_share = 0;
  std::uint64_t lines_shared_for_long = 0;  // lines on which sampled blocks lay together for kLongShare of the recording
  std::vector<SharingSites> sharing;        // sorted: the most first; at most kTopRows

  std::vector<AllocationSite> sites;  // sorted by time: the most first
};
inline constexpr std::size_t kHistoryPoints = 200;
inline constexpr std::size_t kTopRows = 20;
inline constexpr double kLongShare = 0.1;

// Adds up the processes of one run as one program. No process gives zeros.
[[nodiscard]] Attribution attribution_of(std::span<const Evidence> processes);
[[nodiscard]] Attribution attribution_of(const Recording& recording, Symbols& symbols);

}  // namespace freehold::doctor
