// SPDX-License-Identifier: MIT
// A program's memory at one moment, as the kernel says it: each mapping of each of its processes with the pages that are
// there. Plain data: run/memory_watch.hpp fills it, memory_parts.hpp says whose the pages are.
#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace freehold::doctor {

struct ResidentMapping {
  std::uint64_t begin = 0, end = 0;
  std::string rights;         // "rw-p"
  std::string name;           // a path, "[heap]", or nothing
  double resident_bytes = 0;  // a page that several processes share counts for each by its part (Pss)
  std::uint64_t device = 0;   // the file's: the major number in the upper half, the minor one in the lower; 0: no file
  std::uint64_t inode = 0;
  bool is_in_tmpfs = false;  // whether the file is in a tmpfs, wherever that is mounted
};

struct ProcessMemory {
  std::uint32_t pid = 0;
  std::vector<ResidentMapping> mappings;  // sorted by address
  double page_table_bytes = 0;
};

struct MemorySnapshot {
  double at_s = 0;  // CLOCK_MONOTONIC
  std::vector<ProcessMemory> processes;
  double files_bytes = 0;  // bytes of files in tmpfs that they wrote and no process maps

  // Adds up all that is resident, and the page tables for it.
  [[nodiscard]] double bytes() const;
};

// Reads the text of /proc/PID/smaps. Mappings that are damaged are left out.
[[nodiscard]] std::vector<ResidentMapping> resident_mappings(const std::string& smaps);

// The devices that are file systems in memory. A number means the same in every mount namespace.
struct TmpfsDevices {
  std::set<std::uint64_t> known;  // devices that were asked about
  std::set<std::uint64_t> tmpfs;  // those that are file systems in memory
};
// Says of `mappings` which are of files in tmpfs. `mountinfo`: the text of /proc/PID/mountinfo, read when there is a device
// that is not known yet.
void mark_files_in_tmpfs(std::vector<ResidentMapping>& mappings, TmpfsDevices& devices,
                         const std::function<std::string()>& mountinfo);

// A file in memory that a process has, or had, open for writing.
struct FileInTmpfs {
  std::uint64_t device = 0, inode = 0;  // the device and inode of a mapping of it
  double bytes = 0;                     // bytes of its pages
};
// Adds up what of `files` none of `processes` maps: what they map is resident in them already.
[[nodiscard]] double unmapped_bytes(const std::vector<FileInTmpfs>& files, const std::vector<ProcessMemory>& processes);

// Returns for how many seconds each of some moments stands: from the middle to the one before to the middle to the one
// after. The sum is the time from the first to the last; of one moment, 1.
[[nodiscard]] std::vector<double> weights_of(const std::vector<MemorySnapshot>& snapshots);

}  // namespace freehold::doctor
