// SPDX-License-Identifier: MIT
// How much memory the kernel lets this process have before it ends one: memory.max and memory.high of its control group and
// of every ancestor (version 1: memory.limit_in_bytes), RLIMIT_AS and RLIMIT_DATA. All are read once, by find(); what is in
// use, and the file of the smallest limit, are read later by descriptors that find() left open, if the program did not close
// them: a limit may be changed while the process runs.
//
// Threads: find() before others; then any, read_again() one at a time. No allocation. Cost of use(): up to a dozen system
// calls, only where a group has a limit; so not after a filter of system calls.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>

#include "freehold/os/cgroup_files.hpp"
#include "freehold/os/file_identity.hpp"

namespace freehold::os {

class MemoryLimit {
 public:
  constexpr MemoryLimit() noexcept = default;

  // Looks at the groups, or at `folder` alone if that is not empty ("off": at none), and at the limits of this process.
  void find(const char* folder, const char* cgroup_root = "/sys/fs/cgroup",
            const char* self_cgroup = "/proc/self/cgroup") noexcept;

  // The smallest limit; 0: none.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }  // publishes nothing
  // Names what sets it: a group's folder, or "RLIMIT_AS".
  [[nodiscard]] const char* source() const noexcept { return source_.text(); }
  // Follows a change in the file that sets the limit, up to the next smallest limit of find(). One thread at a time.
  void read_again() noexcept;

  struct Use {
    std::uint64_t bytes = 0;   // use of all processes in the group, without pages of files, which the kernel drops first
    bool is_stalling = false;  // processes wait for memory (PSI): a hundredth of the last ten seconds, all of them
  };
  // Nothing: no group has the limit, or its files cannot be read any more.
  [[nodiscard]] std::optional<Use> use() const noexcept;

 private:
  // A file that is read again and again.
  struct File {
    int fd = -1;
    FileIdentity identity;
    void open(const char* folder, const char* name) noexcept;
    [[nodiscard]] bool is_there() const noexcept { return fd >= 0 && identity.is_of(fd); }
  };

  void look_at(Path& folder, bool is_second_version) noexcept;
  void look_at_process() noexcept;
  [[nodiscard]] bool is_smallest(std::uint64_t bytes) noexcept;

  // No limit: version 1 says so by a number beyond every machine's memory. RLIM_INFINITY is greater, and "max" is no number.
  static constexpr std::uint64_t kNone = std::uint64_t{1} << 60;

  std::atomic<std::uint64_t> bytes_{0};
  std::uint64_t next_bytes_ = kNone;  // the smallest of the other limits
  Path source_;
  const char* file_ = nullptr;  // of a group, that sets the limit; null: none does
  bool is_second_version_ = false;
  File limit_, current_, details_, pressure_;
};

}  // namespace freehold::os
