// SPDX-License-Identifier: MIT
// The memory that a program and its descendants hold, read from /proc while they run: all mappings with their resident
// pages, and the files in tmpfs that they have open for writing, or had and left there, every few milliseconds. One thread.
// Cost: the kernel walks the page tables, about a millisecond for 100 MiB; at most a tenth of the time is spent on it.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/doctor/facts/memory_snapshot.hpp"

namespace freehold::doctor {

class MemoryWatch {
 public:
  // `and_look`: at each look, too; empty: nothing.
  explicit MemoryWatch(pid_t root, std::function<void(pid_t)> and_look = {});

  // When to look next, in seconds of CLOCK_MONOTONIC.
  [[nodiscard]] double next_s() const noexcept { return next_s_; }
  // Looks, if it is time. `adopted`: descendants of the program whose parents have ended.
  void look(const std::vector<pid_t>& adopted);

  [[nodiscard]] const std::vector<MemorySnapshot>& snapshots() const noexcept { return snapshots_; }
  // The share of looks at which the kernel did not let the memory of the program, or of a child, be read.
  [[nodiscard]] double hidden_share() const noexcept { return looks_ == 0 ? 0 : hidden_looks_ / looks_; }
  [[nodiscard]] double hidden_child_share() const noexcept { return looks_ == 0 ? 0 : hidden_child_looks_ / looks_; }

 private:
  using FileId = std::pair<std::uint64_t, std::uint64_t>;  // device and inode

  void add_open_files(const std::string& folder, std::map<FileId, double>& bytes);
  void add_closed_files(std::map<FileId, double>& bytes);
  void thin_out();

  pid_t root_;
  std::function<void(pid_t)> and_look_;
  double pause_s_;
  double next_s_ = 0;
  double looks_ = 0, hidden_looks_ = 0, hidden_child_looks_ = 0;
  TmpfsDevices tmpfs_;
  std::set<FileId> of_caller_;              // open here, too: the program inherited them
  std::map<std::uint64_t, bool> is_tmpfs_;  // by device, of files that were open
  std::map<FileId, std::string> names_;     // of files in tmpfs that were open for writing
  std::vector<MemorySnapshot> snapshots_;
};

}  // namespace freehold::doctor
