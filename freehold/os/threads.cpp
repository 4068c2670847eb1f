// SPDX-License-Identifier: MIT
#include "freehold/os/threads.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "freehold/base/keep_errno.hpp"

namespace freehold::os {
namespace {

// The number behind `name` in the text of /proc/.../status; 0: there is none.
[[nodiscard]] std::uint64_t number_behind(const char* text, const char* name) noexcept {
  const char* at = std::strstr(text, name);
  if (at == nullptr) return 0;
  at += std::strlen(name);
  std::uint64_t value = 0;
  for (at += std::strspn(at, " \t"); *at >= '0' && *at <= '9'; ++at) value = value * 10 + static_cast<unsigned>(*at - '0');
  return value;
}

// Without printf, which may allocate.
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
  return ::stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 2 ? static_cast<unsigned>(tasks.st_nlink - 2) : 0;
}

bool thread_has_ended(pid_t process, pid_t thread) noexcept {
  const base::KeepErrno keep;
  return syscall(SYS_tgkill, process, thread, 0) != 0 && errno == ESRCH;  // 0 is no signal: only asks
}

std::uint64_t stamp_of_sleeping_thread(pid_t thread) noexcept {
  if (thread <= 0) return 0;
  const base::KeepErrno keep;
  char path[64], text[4096];
  write_path(path, thread);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd < 0 ? -1 : ::read(fd, text, sizeof text - 1);
  if (fd >= 0) ::close(fd);
  if (got <= 0) return 0;
  text[got] = '\0';
  const char* const state = std::strstr(text, "State:\t");
  if (state == nullptr || (state[7] != 'S' && state[7] != 'D')) return 0;
  return 1 + number_behind(text, "\nvoluntary_ctxt_switches:") + number_behind(text, "nonvoluntary_ctxt_switches:");
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
