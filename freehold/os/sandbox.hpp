// SPDX-License-Identifier: MIT
// Restrictions that a process puts on itself and on its children, and that cannot be lifted: files by Landlock (Linux 5.13),
// sockets by a filter of system calls.
//
//   forbid_new_privileges();                      first: the others need it
//   FileRules rules;                              then everything that is not allowed is refused
//   rules.allow("/usr/lib", FileAccess::kRead);
//   rules.enforce();
//
// Every function returns 0 or an errno. Threads: the calling one, which should be the only one. Cost: a few system calls.
#pragma once
#include <atomic>
#include <cstdint>

namespace freehold::os {

// Is true once the process has announced a filter of system calls, which may end it for a call that is not in its list. From
// then on malloc and free use mmap, munmap, mremap, madvise and futex, and do without what other calls give. Relaxed: a
// mode.
inline constinit std::atomic<bool> g_confined{false};
[[nodiscard]] inline bool is_confined() noexcept { return g_confined.load(std::memory_order_relaxed); }

// Returns whether a prctl of this operation, or a call of this number and first argument, begins a filter of system calls.
[[nodiscard]] bool announces_filter(long operation) noexcept;
[[nodiscard]] bool announces_filter(long number, long first) noexcept;

// setuid programs gain nothing from now on (no_new_privs).
[[nodiscard]] int forbid_new_privileges() noexcept;

// Sockets cannot be made from now on (EACCES), nor io_uring, whose operations no filter sees (ENOSYS). Pre:
// forbid_new_privileges(). x86-64 only; elsewhere ENOSYS.
[[nodiscard]] int refuse_sockets() noexcept;

enum class FileAccess {
  kRead,       // read, list, execute
  kReadWrite,  // the same, and write files that exist
  kAll,        // everything
};

class FileRules {
 public:
  FileRules() noexcept;
  ~FileRules();
  FileRules(const FileRules&) = delete;
  FileRules& operator=(const FileRules&) = delete;

  // Allows an access of a file, or of a folder and all that it has. A path that does not exist needs no rule: 0.
  [[nodiscard]] int allow(const char* path, FileAccess access) noexcept;
  // Refuses every other access from now on. Returns the error of the constructor if that failed: ENOSYS or EOPNOTSUPP, the
  // kernel has no Landlock. Pre: forbid_new_privileges().
  [[nodiscard]] int enforce() noexcept;

 private:
  std::uint64_t handled_ = 0;  // the accesses that this kernel knows
  int rules_ = -1;             // a descriptor
  int error_ = 0;
};

}  // namespace freehold::os
