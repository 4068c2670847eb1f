// What the probe recorded of one process, put together: blocks with their beginnings and ends, calls with their durations,
// and the lines that blocks of several threads shared. Pure data, no symbols: attribution.hpp says what it means.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "freehold/doctor/trace_format.hpp"

namespace freehold::doctor {

// An index into Recording::stacks.
using StackId = std::uint32_t;

struct BlockSample {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  // asked for
  double weight = 0;        // allocations that it stands for
  double began_s = 0;       // since the recording's beginning
  double call_ns = 0;       // of the allocating call, the clock's own cost taken off
  double waited_s = 0;      // of that, asleep
  std::uint32_t thread = 0;
  StackId stack = 0;
  std::optional<double> ended_s;  // none: it lived on, or its end was not seen
  std::uint32_t ending_thread = 0;
  StackId ending_stack = 0;
};

struct FreeSample {
  double weight = 0;  // frees that it stands for
  double call_ns = 0;
  double waited_s = 0;
  std::uint32_t thread = 0;
  StackId stack = 0;
};

struct RecordedThread {
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  double cpu_s = 0;
  double probe_s = 0;  // spent in recording
};

// Blocks of two threads that lay on one line at the same time.
struct SharedLine {
  std::uint64_t line = 0;  // address / 64
  std::uint32_t threads[2] = {};
  StackId stacks[2] = {};
  std::uint64_t bytes[2] = {};
};

struct Recording {
  std::uint32_t pid = 0;
  std::uint32_t parent = 0;                        // the process that forked it while it was recorded; else 0
  double seconds = 0;                              // from the probe's beginning to the last record
  std::uint64_t dropped = 0;                       // records that found no room
  double fast_path_ns = 0;                         // what the probe adds to each call that is not sampled
  std::vector<std::vector<std::uint64_t>> stacks;  // return addresses, innermost first
  std::vector<BlockSample> blocks;                 // in the order of their beginnings
  std::vector<FreeSample> frees;
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
