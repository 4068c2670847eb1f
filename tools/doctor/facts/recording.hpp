// SPDX-License-Identifier: MIT
// A recording of one process, put together from the probe's records: blocks with their beginnings and ends, calls with their
// durations, and the lines that blocks of several threads shared. Pure data, no symbols: attribution.hpp says what it means.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/doctor/probe/trace_format.hpp"

namespace freehold::doctor {

// An index into Recording::stacks.
using StackId = std::uint32_t;

struct BlockSample {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  // size that the program asked for
  double weight = 0;        // number of allocations that it stands for
  double began_s = 0;       // seconds since the recording began
  double call_ns = 0;       // duration of the allocating call, the clock's own cost taken off
  double waited_s = 0;      // seconds of the call that the thread slept by itself
  double preempted_s = 0;   // seconds of the call in which the thread wanted a CPU and had none
  std::uint32_t thread = 0;
  StackId stack = 0;
  bool is_end_watched = true;     // false: its end would not have been seen, whenever that was
  std::optional<double> ended_s;  // none: it lived on, or its end was not seen
  std::uint32_t ending_thread = 0;
  StackId ending_stack = 0;
};

struct FreeSample {
  double weight = 0;  // number of frees that it stands for
  double call_ns = 0;
  double waited_s = 0;
  double preempted_s = 0;
  std::uint32_t thread = 0;
  StackId stack = 0;
};

// A wait in a call of the program's own, which had to wait.
struct WaitSample {
  double weight = 0;  // number of waits that it stands for
  double waited_s = 0;
  WaitKind kind{};
  std::uint64_t lock = 0;  // address of the lock
  std::uint32_t thread = 0;
  StackId stack = 0;
};

struct RecordedThread {
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  double cpu_s = 0;
  double probe_s = 0;  // time that the probe took of it
  double began_s = 0;  // when it was first and last seen, since the recording began
  double last_s = 0;
};

// Blocks of two threads that lay on one line at the same time.
struct SharedLine {
  std::uint64_t line = 0;  // address / 64
  std::uint32_t threads[2] = {};
  std::uint32_t ending_threads[2] = {};  // 0: the end was not seen
  StackId stacks[2] = {};
  std::uint64_t bytes[2] = {};
  double together_s = 0;      // how long both lived, as far as was seen
  bool is_in_watched = true;  // found while every call in its page was recorded; else between blocks that were sampled
};

// Says whether a thread allocated or freed both: it then uses both, as far as that is seen.
[[nodiscard]] bool has_common_user(const SharedLine& shared);

struct Recording {
  std::uint32_t pid = 0;
  std::uint32_t parent = 0;                        // the process that forked it while it was recorded; else 0
  double began_s = 0;                              // CLOCK_MONOTONIC at the recording's beginning
  double seconds = 0;                              // from the probe's beginning to the last record
  double cpu_s = 0;                                // CPU time of the process, the probe's included
  bool is_whole = false;                           // every block is there, and its end; else a sample of them
  std::uint64_t dropped = 0;                       // number of records that found no room
  double mapped_bytes = 0;                         // bytes mapped by mmap() and the like outside malloc
  double mapping_s = 0;                            // time that those calls and munmap() took
  double fast_path_ns = 0;                         // what the probe adds to each call that is not sampled
  std::vector<std::vector<std::uint64_t>> stacks;  // return addresses, innermost first
  std::vector<BlockSample> blocks;                 // sorted by their beginnings
  std::vector<FreeSample> frees;
  std::vector<WaitSample> waits;
  std::map<std::uint32_t, RecordedThread> threads;  // keyed by the system's id
  std::vector<SharedLine> shared_lines;             // each line once for each pair of stacks
  std::uint64_t lines_watched = 0;                  // number of lines in which blocks began while their page was watched
};

// Tells why a file is no recording.
struct NoRecording {
  std::string why;
};

// Reads one file of the probe's. A file that was cut short, by a full disk or the end of the process, gives what is whole of
// it. Cost: O(size); memory: about that of the file.
[[nodiscard]] std::optional<Recording> read_recording(const std::filesystem::path& file, NoRecording& no);

}  // namespace freehold::doctor
