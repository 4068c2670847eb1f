// SPDX-License-Identifier: MIT
#include "freehold/process/supervisor/memory_groups.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace freehold::process {
namespace {

// Returns an errno.
int write_text(const std::string& path, const std::string& text) noexcept {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return errno;
  const int error = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : errno;
  ::close(file);
  return error;
}
std::string read_text(const std::string& path) noexcept {
  char text[1024];
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t bytes = file < 0 ? 0 : ::read(file, text, sizeof text);
  if (file >= 0) ::close(file);
  return {text, static_cast<std::size_t>(bytes > 0 ? bytes : 0)};
}

// Groups of pools that were killed.
void remove_groups_of_dead_pools(const std::string& folder) {
  std::error_code none;
  std::vector<std::filesystem::path> left;
  for (std::filesystem::directory_iterator file(folder, none), end; file != end; file.increment(none)) {
    int pid = 0;
    const std::string name = file->path().filename().string();
    if (std::sscanf(name.c_str(), "freehold-%d-", &pid) == 1 && ::kill(pid, 0) != 0 && errno == ESRCH)
      left.push_back(file->path());
  }
  for (const std::filesystem::path& path : left) ::rmdir(path.c_str());  // which fails while processes live in it
}

}  // namespace

MemoryGroups::MemoryGroups(const std::string& folder, unsigned workers, std::uint64_t bytes) {
  static std::atomic<unsigned> pools{0};
  const std::string refused = "the memory cgroup " + folder + " cannot be used: ";
  second_version_ = ::access((folder + "/cgroup.controllers").c_str(), F_OK) == 0;
  if (second_version_) {
    if ((" " + read_text(folder + "/cgroup.controllers")).find(" memory") == std::string::npos) {
      error_ = refused + "it has no memory controller";
      return;
    }
    if (const int error = write_text(folder + "/cgroup.subtree_control", "+memory"); error != 0) {
      error_ =
          refused + (error == EBUSY ? "processes live in it; they have to be in a group below it" : std::strerror(error));
      return;
    }
  } else if (::access((folder + "/memory.limit_in_bytes").c_str(), F_OK) != 0) {
    error_ = refused + "it is no such folder";
    return;
  }
  remove_groups_of_dead_pools(folder);
  const std::string name =
      folder + "/freehold-" + std::to_string(::getpid()) + "-" + std::to_string(pools.fetch_add(1)) + "-";
  for (unsigned worker = 0; worker < workers; ++worker) {
    const std::string path = name + std::to_string(worker);
    int error = ::mkdir(path.c_str(), 0755) == 0 ? 0 : errno;
    if (error == 0) groups_.push_back({path});
    const char* const limit = second_version_ ? "/memory.max" : "/memory.limit_in_bytes";
    if (error == 0) error = write_text(path + limit, std::to_string(bytes));
    if (error != 0) {
      error_ = refused + std::strerror(error);
      return;
    }
    // With swap, the limit would only move pages there; and a worker that exceeds it has to end with its children.
    if (!second_version_) continue;
    static_cast<void>(write_text(path + "/memory.swap.max", "0"));
    static_cast<void>(write_text(path + "/memory.oom.group", "1"));
  }
}

MemoryGroups::~MemoryGroups() {
  // A group stays busy for some moments after its last process was reaped.
  for (const Group& group : groups_)
    for (int i = 0; ::rmdir(group.path.c_str()) != 0 && errno == EBUSY && i < 100; ++i) ::usleep(1000);
}

bool MemoryGroups::move_in(unsigned worker, int pid) const noexcept {
  errno = write_text(groups_[worker].path + "/cgroup.procs", std::to_string(pid));
  return errno == 0;
}

std::uint64_t MemoryGroups::kills_in(const std::string& path) const noexcept {
  const std::string text = read_text(path + (second_version_ ? "/memory.events" : "/memory.oom_control"));
  const std::size_t at = text.find("oom_kill ");
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + 9, nullptr, 10);
}

bool MemoryGroups::has_killed(unsigned worker) noexcept {
  const std::uint64_t kills = kills_in(groups_[worker].path), before = groups_[worker].kills;
  groups_[worker].kills = kills;
  return kills > before;
}

}  // namespace freehold::process
