// SPDX-License-Identifier: MIT
// One memory cgroup for each worker, below a cgroup that was delegated to this user. The kernel keeps worker and children
// below the limit, and tells when it has killed for it. Version 2 (memory.max), or a folder of version 1
// (memory.limit_in_bytes).
//
// The limit counts every page that the worker was the first to touch, including those of the table. Therefore the supervisor
// adds the area of one task to it.
//
// Threads: the supervisor's.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace freehold::process {

class MemoryGroups {
 public:
  // Makes `workers` groups in the folder, each with this limit. Errors: error() says why in one line; else it is empty.
  MemoryGroups(const std::string& folder, unsigned workers, std::uint64_t bytes);
  // Removes them. Pre: no worker lives.
  ~MemoryGroups();
  MemoryGroups(const MemoryGroups&) = delete;
  MemoryGroups& operator=(const MemoryGroups&) = delete;

  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  // Moves a process that was just started. Returns false and errno.
  [[nodiscard]] bool move_in(unsigned worker, int pid) const noexcept;
  // Returns whether the kernel has killed in this group since the last question.
  [[nodiscard]] bool has_killed(unsigned worker) noexcept;

 private:
  struct Group {
    std::string path;
    std::uint64_t kills = 0;
  };
  [[nodiscard]] std::uint64_t kills_in(const std::string& path) const noexcept;

  bool second_version_ = false;
  std::vector<Group> groups_;
  std::string error_;
};

}  // namespace freehold::process
