// SPDX-License-Identifier: MIT
#include "freehold/doctor/run/memory_watch.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "freehold/doctor/run/child.hpp"
#include "freehold/live/proc_folder.hpp"
#include "freehold/live/process.hpp"

namespace freehold::doctor {
namespace {

constexpr double kSnapshotsEvery_s = 0.008;
constexpr double kSnapshotShare = 0.1;       // of the time, that looking may take
constexpr std::size_t kMostSnapshots = 400;  // then every second one is dropped, and looks are half as many

// A figure in KiB, as /proc has them.
double figure_in(const std::string& file, std::string_view name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name)) return std::strtod(line.c_str() + name.size(), nullptr) * 1024;
  return 0;
}

// As against one that has ended, or has no memory any more.
bool is_hidden(const std::string& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == EACCES || errno == EPERM;
  ::close(fd);
  return false;
}

double shared_memory() { return figure_in("/proc/meminfo", "Shmem:"); }

}  // namespace

MemoryWatch::MemoryWatch(pid_t root) : root_(root), pause_s_(kSnapshotsEvery_s), shared_before_(shared_memory()) {}

void MemoryWatch::look(const std::vector<pid_t>& adopted) {
  const double begin = now_s();
  if (begin < next_s_) return;
  MemorySnapshot snapshot{.at_s = begin, .processes = {}, .shared_memory_bytes = shared_memory()};
  bool hides = false, child_hides = false;
  for (const pid_t pid : live::family_of(root_, adopted)) {
    const std::string folder = "/proc/" + std::to_string(pid);
    ProcessMemory process{static_cast<std::uint32_t>(pid), resident_mappings(live::text_of_proc_file(folder + "/smaps")),
                          figure_in(folder + "/status", "VmPTE:")};
    mark_files_in_tmpfs(process.mappings, tmpfs_, [&folder] { return live::text_of_proc_file(folder + "/mountinfo"); });
    if (!process.mappings.empty())
      snapshot.processes.push_back(std::move(process));
    else if (is_hidden(folder + "/smaps"))
      (pid == root_ ? hides : child_hides) = true;
  }
  ++looks_;
  hidden_looks_ += hides ? 1 : 0;
  hidden_child_looks_ += child_hides ? 1 : 0;
  const double ended = now_s();
  next_s_ = ended + std::max(pause_s_, (ended - begin) * (1 / kSnapshotShare - 1));
  if (snapshot.processes.empty()) return;
  snapshots_.push_back(std::move(snapshot));
  if (snapshots_.size() >= kMostSnapshots) thin_out();
}

void MemoryWatch::thin_out() {
  std::vector<MemorySnapshot> kept;
  for (std::size_t i = 0; i < snapshots_.size(); i += 2) kept.push_back(std::move(snapshots_[i]));
  snapshots_ = std::move(kept);
  pause_s_ *= 2;
}

}  // namespace freehold::doctor
