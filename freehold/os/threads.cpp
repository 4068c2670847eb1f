// SPDX-License-Identifier: MIT
#include "freehold/os/threads.hpp"

#include <linux/futex.h>

#include <cerrno>
#include <cstring>

#include "freehold/base/keep_errno.hpp"
#include "freehold/os/cgroup_files.hpp"
#include "freehold/os/system_call.hpp"

namespace freehold::os {
namespace {

// Does without printf, which may allocate.
void write_path(char (&path)[64], pid_t thread) noexcept {
  static constexpr char kBefore[] = "/proc/self/task/", kBehind[] = "/status";
  char digits[16];
  unsigned count = 0;
  for (auto rest = static_cast<unsigned>(thread); rest != 0; rest /= 10)
    digits[count++] = static_cast<char>('0' + rest % 10);
  char* at = path;
  std::memcpy(at, kBefore, sizeof kBefore - 1);
  at += sizeof kBefore - 1;
  while (count != 0) *at++ = digits[--count];
  std::memcpy(at, kBehind, sizeof kBehind);
}

}  // namespace

unsigned thread_count() noexcept {
  const base::KeepErrno keep;
  struct stat tasks;
  // A folder's links: its name, its own ".", and one for each folder in it.
  return kernel::stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 2 ? static_cast<unsigned>(tasks.st_nlink - 2) : 0;
}

bool thread_has_ended(pid_t process, pid_t thread) noexcept {
  const base::KeepErrno keep;
  return system_call(SYS_tgkill, process, thread, 0) != 0 && errno == ESRCH;  // 0 is no signal: only asks
}

std::uint64_t stamp_of_sleeping_thread(pid_t thread) noexcept {
  if (thread <= 0) return 0;
  const base::KeepErrno keep;
  char path[64];
  write_path(path, thread);
  std::uint64_t stamp = 0;
  bool sleeps = false;
  for (NumberLines lines(path); const char* const line = lines.next();) {
    static constexpr const char* kKeys[] = {"State:\t", "voluntary_ctxt_switches:\t", "nonvoluntary_ctxt_switches:\t"};
    for (const char* const key : kKeys) {
      const std::size_t length = std::strlen(key);
      if (std::strncmp(line, key, length) != 0) continue;
      const char* value = line + length;
      std::uint64_t switches = 0;
      sleeps |= key == kKeys[0] && (*value == 'S' || *value == 'D');
      if (read_number(value, switches)) stamp += switches;
    }
  }
  return sleeps ? 1 + stamp : 0;
}

bool waits_for_lock(long call, unsigned long operation, unsigned long expected) noexcept {
  if (call != SYS_futex) return false;
  switch (static_cast<int>(operation) & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET: return static_cast<std::uint32_t>(expected) == 2;
    case FUTEX_LOCK_PI: return true;
    default: return false;
  }
}

}  // namespace freehold::os
