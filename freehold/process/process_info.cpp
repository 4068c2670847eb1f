// SPDX-License-Identifier: MIT
#include "freehold/process/process_info.hpp"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "freehold/os/cgroup_files.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/os/process_handle.hpp"

namespace freehold::process {
namespace {

// A file of /proc about one process; pid 0: this one. Empty if it cannot be read.
struct ProcFile {
  ProcFile(int pid, const char* name) noexcept {
    char path[48];
    if (pid == 0)
      std::snprintf(path, sizeof path, "/proc/self/%s", name);
    else
      std::snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    std::FILE* const file = std::fopen(path, "re");
    if (file == nullptr) return;
    text[std::fread(text, 1, sizeof text - 1, file)] = '\0';
    std::fclose(file);
  }
  char text[1024] = "";
};

// Returns the room that a memory cgroup leaves below its limit. The page cache does not count as used, since the kernel can
// drop it.
std::uint64_t left_in_group(os::Path& folder, bool is_version2) noexcept {
  std::uint64_t limit = 0, usage = 0, cache = 0;
  if (!os::number_in_file(folder, is_version2 ? "/memory.max" : "/memory.limit_in_bytes", limit)) return UINT64_MAX;
  os::number_in_file(folder, is_version2 ? "/memory.current" : "/memory.usage_in_bytes", usage);
  os::number_in_file(folder, "/memory.stat", cache, is_version2 ? "inactive_file " : "total_inactive_file ");
  return limit - std::min(limit, usage - std::min(cache, usage));
}

}  // namespace

std::uint64_t available_memory(const char* root) noexcept {
  const auto below_root = [root](const char* path) { return os::Path(root).add(path); };
  std::uint64_t kibibytes = 0, least = UINT64_MAX;
  os::Path path(root);
  if (os::number_in_file(path, "/proc/meminfo", kibibytes, "MemAvailable:")) least = kibibytes * 1024;
  os::for_each_cgroup(
      below_root("/sys/fs/cgroup").text(), below_root("/proc/self/cgroup").text(), "memory",
      [&](os::Path& folder, bool is_version2) { least = std::min(least, left_in_group(folder, is_version2)); });
  return least;
}

std::uint64_t now() noexcept {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

std::uint64_t own_resident_bytes(int pid) noexcept {
  const ProcFile file(pid, "statm");
  unsigned long total = 0, resident = 0, shared = 0;
  const bool read = std::sscanf(file.text, "%lu %lu %lu", &total, &resident, &shared) == 3;
  return read ? (resident - shared) * os::page_bytes() : 0;
}

std::uint64_t time_without_cpu(int pid) noexcept {
  const ProcFile file(pid, "schedstat");
  unsigned long long ran = 0, waited = 0;
  return std::sscanf(file.text, "%llu %llu", &ran, &waited) == 2 ? waited : 0;
}

std::uint64_t identity_of(int pid) noexcept {
  const ProcFile file(pid, "stat");
  // The 22nd field is the start time; the second one, in parentheses, may hold anything.
  const char* at = std::strrchr(file.text, ')');
  for (int field = 2; at != nullptr && field < 22; ++field) at = std::strchr(at + 1, ' ');
  if (at == nullptr) return 0;
  return std::strtoull(file.text, nullptr, 10) | std::strtoull(at, nullptr, 10) << 22;
}

void kill_with_children(int pid, int pidfd) noexcept {
  kill_children(pid);
  os::signal_process(pidfd, SIGKILL);
}
void kill_children(int pid) noexcept { ::kill(-pid, SIGKILL); }

bool has_died(int pidfd) noexcept {
  pollfd dead{pidfd, POLLIN, 0};
  return ::poll(&dead, 1, 0) == 1;
}
void wait_for_death(int pidfd) noexcept {
  pollfd dead{pidfd, POLLIN, 0};
  while (::poll(&dead, 1, -1) < 0 && errno == EINTR) {
  }
}

}  // namespace freehold::process
