// SPDX-License-Identifier: MIT
#include "freehold/process/process_info.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>

#include "freehold/os/pages.hpp"

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

// The number behind a word of a small file; `otherwise` if it has none. No word: the file begins with the number.
std::uint64_t number_in(const std::string& path, std::string_view word, std::uint64_t otherwise) {
  std::ifstream in(path);
  std::string name;
  std::uint64_t number = 0;
  while (!word.empty() && in >> name && name != word) continue;
  return in >> number ? number : otherwise;
}

// What a memory cgroup and those above it leave; the page cache does not count, since the kernel can drop it.
struct GroupFiles {
  const char *limit, *usage, *cache;
};
constexpr GroupFiles kVersion1{"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"};
constexpr GroupFiles kVersion2{"/memory.max", "/memory.current", "inactive_file"};

std::uint64_t left_in_groups(const std::string& root, std::string group, const GroupFiles& files) {
  std::uint64_t least = UINT64_MAX;
  for (;; group.resize(group.rfind('/'))) {
    const std::string folder = root + group;
    const std::uint64_t limit = number_in(folder + files.limit, "", UINT64_MAX);
    if (limit != UINT64_MAX) {
      const std::uint64_t usage = number_in(folder + files.usage, "", 0);
      const std::uint64_t cache = number_in(folder + "/memory.stat", files.cache, 0);
      const std::uint64_t used = usage - std::min(cache, usage);
      least = std::min(least, limit - std::min(limit, used));
    }
    if (group.empty() || group.rfind('/') == std::string::npos) return least;
  }
}

std::uint64_t available(const std::string& root) {
  constexpr std::uint64_t kKibibyte = 1024;
  const std::uint64_t machine = number_in(root + "/proc/meminfo", "MemAvailable:", UINT64_MAX / kKibibyte) * kKibibyte;
  std::uint64_t least = machine;
  std::ifstream in(root + "/proc/self/cgroup");  // lines "number:controllers:/path"
  for (std::string line; std::getline(in, line);) {
    const std::size_t path = line.find(":/");
    if (path == std::string::npos) continue;
    const std::string group = line.substr(path + 1) == "/" ? "" : line.substr(path + 1);
    const std::string controllers = "," + line.substr(std::min(line.find(':') + 1, path), path - line.find(':') - 1) + ",";
    if (controllers == ",,") least = std::min(least, left_in_groups(root + "/sys/fs/cgroup", group, kVersion2));
    if (controllers.find(",memory,") != std::string::npos)
      least = std::min(least, left_in_groups(root + "/sys/fs/cgroup/memory", group, kVersion1));
  }
  return least;
}

}  // namespace

std::uint64_t available_memory(const char* root) noexcept { return available(root); }

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

}  // namespace freehold::process
