// SPDX-License-Identifier: MIT
// How much memory the kernel lets this process have before it ends one: memory.max and memory.high of its control group and
// of every ancestor (version 1: memory.limit_in_bytes), RLIMIT_AS and RLIMIT_DATA. Read once, by find(); what is in use of
// it is read later by descriptors that find() left open, if the program did not close them.
//
// Threads: find() before others; then any. No allocation. Cost of use(): up to a dozen system calls, only where a group has
// a limit; so not after a filter of system calls.
#pragma once
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
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  // What sets it: a group's folder, or "RLIMIT_AS".
  [[nodiscard]] const char* source() const noexcept { return source_.text(); }

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

  std::uint64_t bytes_ = 0;
  Path source_;
  bool is_group_ = false, is_second_version_ = false;
  File current_, details_, pressure_;
};

}  // namespace freehold::os
