// SPDX-License-Identifier: MIT
// The checks of a supervisor know of each entry of the table in which state they found it, and since when; and how many
// workers have died of its task, which the entry's word counts, too, unless a component has written into it.
//
// Threads: the supervisor's.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "freehold/process/table/task_word.hpp"

namespace freehold::process {

class EntryWatch {
 public:
  explicit EntryWatch(std::uint32_t entries) : entries_(entries) {}

  // When a check first found the entry in the state in which it is.
  std::uint64_t unchanged_since(std::uint32_t entry, TaskWord word, std::uint64_t time) noexcept {
    Observation& seen = entries_[entry];
    if (!seen.word.same_attempt(word)) {
      seen.word = word;
      seen.since = time;
      seen.helped = false;
    }
    return seen.since;
  }
  // Returns if its client was woken once more; from now on it was.
  [[nodiscard]] bool was_helped(std::uint32_t entry) const noexcept { return entries_[entry].helped; }
  [[nodiscard]] bool help(std::uint32_t entry) noexcept { return !std::exchange(entries_[entry].helped, true); }
  // Counts a death. Returns whether there were more than the word can count.
  [[nodiscard]] bool dies_too_often(std::uint32_t entry, std::uint32_t generation) noexcept {
    Observation& seen = entries_[entry];
    if (std::exchange(seen.deaths_generation, generation) != generation) seen.deaths = 0;
    return ++seen.deaths > TaskWord::kMaxAttempts;
  }
  // Says that the pages of this generation were given back, or that it has never been used.
  [[nodiscard]] bool is_clean(std::uint32_t entry, std::uint32_t generation) const noexcept {
    return entries_[entry].clean_generation == generation;
  }
  void set_clean(std::uint32_t entry, std::uint32_t generation) noexcept { entries_[entry].clean_generation = generation; }
  // The table is as new; used pages are purged later.
  void reset() noexcept {
    for (Observation& seen : entries_) seen = {};
  }

 private:
  struct Observation {
    TaskWord word;
    std::uint64_t since = 0;
    bool helped = false;
    std::uint32_t clean_generation = 0;
    std::uint32_t deaths_generation = 0, deaths = 0;
  };

  std::vector<Observation> entries_;
};

}  // namespace freehold::process
