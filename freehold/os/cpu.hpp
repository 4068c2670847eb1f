// SPDX-License-Identifier: MIT
// Processors: how many of them this process may use, in a container too, and which instructions they have.
#pragma once
#include <cstdint>

namespace freehold::os {

// CPUs that this process may use: the affinity mask, lowered by the cgroup's quota (cpu.max of v2 or cfs_quota of v1,
// rounded up). `source` names the limit that applies: "affinity" or "cgroup". Cost: a few system calls; ask once.
struct CpuCount {
  unsigned cpus = 1;
  const char* source = "affinity";
};
[[nodiscard]] CpuCount usable_cpus() noexcept;
// Returns the quota in CPUs, rounded up, from files below `cgroup_root` ("/sys/fs/cgroup") for the cgroup path of
// `self_cgroup` ("/proc/self/cgroup"); 0: no quota. Separate for tests.
[[nodiscard]] unsigned cgroup_quota_cpus(const char* cgroup_root, const char* self_cgroup) noexcept;

// One more than the highest number of a CPU that may ever run a thread, from the system's list ("0-3,8-11"); 0 if it cannot
// be read. Not sysconf: without /sys that counts the affinity mask, and a thread's CPU may have a higher number.
[[nodiscard]] unsigned possible_cpus(const char* list = "/sys/devices/system/cpu/possible") noexcept;

// Returns whether 256-bit integer instructions may be used (the CPU has them and the system saves their registers).
[[nodiscard]] bool has_avx2() noexcept;

}  // namespace freehold::os
