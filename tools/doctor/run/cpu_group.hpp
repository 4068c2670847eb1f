// SPDX-License-Identifier: MIT
// The CPUs that a process's control groups allow it, and the time for which they have kept its group from running. Versions
// 1 and 2. Every group from the process's own up to the root counts, and the tightest decides. One thread. Cost: a few small
// files are read.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace freehold::doctor {

class CpuGroup {
 public:
  // The group of a process: `membership` is its /proc/PID/cgroup. Inside a container, whose groups are mounted as the root,
  // the root stands for what cannot be found.
  explicit CpuGroup(const std::string& membership, const std::filesystem::path& root = "/sys/fs/cgroup");

  // CPUs, fractions included; 0: no limit.
  [[nodiscard]] double quota_cpus() const;
  // Time since the group began that its quota kept it from running, of all CPUs together.
  [[nodiscard]] double throttled_s() const;
  // True if the kernel weighs the process in a group, and not in its session (autogroup).
  [[nodiscard]] bool is_weighed() const;

 private:
  std::filesystem::path version_1_root_;
  std::vector<std::filesystem::path> folders_;  // the process's own first
};

// "/proc/PID/cgroup" as text; empty: the process is gone.
[[nodiscard]] std::string membership_of(int pid);

}  // namespace freehold::doctor
