// SPDX-License-Identifier: MIT
// Describes the machine of a measurement.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace freehold::inline tools {

struct Machine {
  std::string cpu_model;
  unsigned cpus = 1;              // that this process may use: affinity, and the share that its cgroups allow, rounded up
  std::string cpus_source;        // the limit that decided: "affinity" or "cgroup"
  std::optional<unsigned> cores;  // that those CPUs lie on; none: the system does not say which CPUs share a core
  std::string system;             // kernel
  std::string libc;
  std::string huge_pages;  // the system's mode of transparent huge pages: "always", "madvise", "never"; empty: unknown
};

[[nodiscard]] Machine this_machine();
// CPU time that other programs, and the host, had on the CPUs that this process may use, since boot. Children of this
// process are its own once they were waited for.
[[nodiscard]] double cpu_seconds_of_others();
// CPUs that a cgroup (version 2) allows: the smallest quota from `group` up to `root`; none if there is no limit.
[[nodiscard]] std::optional<double> cgroup_cpus(const std::string& root, const std::string& group);

// Cores that these CPUs lie on, by the lists of CPUs that share one; none if a list is missing.
[[nodiscard]] std::optional<unsigned> cores_of(const std::vector<unsigned>& cpus,
                                               const std::string& root = "/sys/devices/system/cpu");

// The mode that a file like /sys/kernel/mm/transparent_hugepage/enabled has in brackets; empty if it has none.
[[nodiscard]] std::string huge_pages_mode(const std::string& file = "/sys/kernel/mm/transparent_hugepage/enabled");

// The time, UTC, ISO 8601.
[[nodiscard]] std::string today();

}  // namespace freehold::inline tools
