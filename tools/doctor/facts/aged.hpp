// SPDX-License-Identifier: MIT
// Histories of mallocs and frees that age a heap, and what a program costs on it. A history is that of a recording, or made
// up as "littering" does (Berger and van Kempen): many blocks of the program's own sizes, of which some at random are freed,
// in random order. Repeatable: the same input gives the same history.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/doctor/facts/comparison.hpp"
#include "tools/doctor/facts/recording.hpp"
#include "tools/doctor/probe/history_format.hpp"

namespace freehold::doctor {

// A million: the heaps that people complained of had 0.8 million free chunks. Every second block is freed, so that free
// memory lies everywhere and joins seldom.
inline constexpr std::uint64_t kMadeUpMallocs = 1'000'000;

struct History {
  std::vector<std::uint64_t> calls;  // words as history_format.hpp says
  std::uint64_t mallocs = 0;
  std::uint64_t survivors = 0;                   // blocks that are never freed
  std::uint64_t peak_bytes = 0, live_bytes = 0;  // counted_bytes() of the blocks, when they were most, and at the end
};

// Sizes of blocks, and how often each was seen.
using Sizes = std::vector<std::pair<std::uint64_t, double>>;

// Returns all that was recorded, in its order; blocks that were live at the end survive. Pre: recording.is_whole.
[[nodiscard]] History history_of(const Recording& recording);
// Adds the sizes of the blocks, those from kLargeBytes on left out: mallocs map them apart, and none lies between others.
void add_sizes(const Recording& recording, Sizes& sizes);
// Makes up a history: kMadeUpMallocs, or as many as take `most_bytes`, of these sizes. Without sizes of 16 to 1024 bytes,
// each power of two half as often as the one before.
[[nodiscard]] History made_up(Sizes sizes, std::uint64_t most_bytes);

// Writes it for libfreehold-age.so. False: the file could not be written.
[[nodiscard]] bool write_history(const History& history, const std::filesystem::path& file);
// Returns the header with its sums; all zero if the file cannot be read.
[[nodiscard]] HistoryHeader read_sums(const std::filesystem::path& file);
// Takes off a trial what playing the history took. Of several programs it is not known when they ran, so that their wall
// time is cut like their CPU time.
void take_off(const HistoryHeader& sums, Trial& trial);

// One malloc: trials on the heap that the program begins with, and on the aged one.
struct AgedMalloc {
  Variant variant;
  Side fresh, aged;
  std::string failure;  // how a run ended otherwise than the program does, in words; empty: none did
};

// Returns how the CPU time changes between two sides; none: one has no trial.
[[nodiscard]] std::optional<Change> cpu_change(const Side& before, const Side& after);
// Returns the first malloc under which the aged program takes less CPU time than under its own, beyond chance; null: none.
// Pre: the program's own comes first.
[[nodiscard]] const AgedMalloc* better_aged(const std::vector<AgedMalloc>& mallocs);

}  // namespace freehold::doctor
