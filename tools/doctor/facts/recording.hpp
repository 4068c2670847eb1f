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
  std::uint64_t bytes = 0;  // asked for
  double weight = 0;        // allocations that it stands for
  double began_s = 0;       // since the recording's beginning
  double call_ns = 0;       // of the allocating call, the clock's own cost taken off
  double waited_s = 0;      // of that, asleep of its own accord
  double preempted_s = 0;   // of that, without a CPU though it wanted one
  std::uint32_t thread = 0;
  StackId stack = 0;
  bool is_end_watched = true;     // false: its end would not have been seen, whenever that was
  std::optional<double> ended_s;  // none: it lived on, or its end was not seen
  std::uint32_t ending_thread = 0;
  StackId ending_stack = 0;
};

struct FreeSample {
  double weight = 0;  // frees that it stands for
  double call_ns = 0;
  double waited_s = 0;
  double preempted_s = 0;
  std::uint32_t thread = 0;
  StackId stack = 0;
};

// A wait in a call of the program's own, which had to wait.
struct WaitSample {
  double weight = 0;  // waits that it stands for
  double waited_s = 0;
  WaitKind kind{};
  std::uint64_t lock = 0;  // address
  std::uint32_t thread = 0;
  StackId stack = 0;
};

struct RecordedThread {
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  double cpu_s = 0;
  double probe_s = 0;  // spent in recording
  double began_s = 0;  // the first and last that was seen of it, since the recording's beginning
  double last_s = 0;
};

// Blocks of two threads that lay on one line at the same time.
struct SharedLine {
  std::uint64_t line = 0;  // address / 64
  std::uint32_t threads[2] = {};
  std::uint32_t ending_threads[2] = {};  // 0: the end was not seen
  StackId stacks[2] = {};
  std::uint64_t bytes[2] = {};
  double together_s = 0;      // for how long, as far as was seen
  bool is_in_watched = true;  // found while every call in its page was recorded; else between blocks that were sampled
};

// Whether a thread allocated or freed both: it then uses both, as far as that is seen.
[[nodiscard]] bool has_common_user(const SharedLine& shared);

struct Recording {
  std::uint32_t pid = 0;
  std::uint32_t parent = 0;                        // the process that forked it while it was recorded; else 0
  double began_s = 0;                              // CLOCK_MONOTONIC
  double seconds = 0;                              // from the probe's beginning to the last record
  double cpu_s = 0;                                // of the process, the probe's share in it included
  std::uint64_t dropped = 0;                       // records that found no room
  double mapped_bytes = 0;                         // by calls of mmap() and the like outside malloc
  double fast_path_ns = 0;                         // what the probe adds to each call that is not sampled
  std::vector<std::vector<std::uint64_t>> stacks;  // return addresses, innermost first
  std::vector<BlockSample> blocks;                 // in the order of their beginnings
  std::vector<FreeSample> frees;
  std::vector<WaitSample> waits;
  std::map<std::uint32_t, RecordedThread> threads;  // by the system's id
  std::vector<SharedLine> shared_lines;             // each line once for each pair of stacks
  std::uint64_t lines_watched = 0;                  // that blocks began in while their page was watched
};

// Why a file is no recording, in a sentence.
struct NoRecording {
  std::string why;
};

// Reads one file of the probe's. A file that was cut short, by a full disk or the end of the process, gives what is whole of
// it. Cost: O(size); memory: about that of the file.
[[nodiscard]] std::optional<Recording> read_recording(const std::filesystem::path& file, NoRecording& no);

}  // namespace freehold::doctor
