// SPDX-License-Identifier: MIT
#include "freehold/doctor/run/memory_watch.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
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

struct Seen {
  std::uint64_t device = 0, inode = 0;
  double bytes = 0;
};
// A regular file; none: it is something else, or not there.
std::optional<Seen> regular_file(const std::string& name) {
  struct stat info{};
  if (::stat(name.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  constexpr double kStatBlock = 512;
  return Seen{std::uint64_t{major(info.st_dev)} << 32 | minor(info.st_dev), info.st_ino,
              kStatBlock * static_cast<double>(info.st_blocks)};
}

bool is_open_for_writing(const std::string& link) {
  struct stat info{};
  return ::lstat(link.c_str(), &info) == 0 && (info.st_mode & S_IWUSR) != 0;
}

bool lies_in_tmpfs(const std::string& name) {
  struct statfs info{};
  return ::statfs(name.c_str(), &info) == 0 && info.f_type == TMPFS_MAGIC;
}

}  // namespace

MemoryWatch::MemoryWatch(pid_t root) : root_(root), pause_s_(kSnapshotsEvery_s) {}

void MemoryWatch::look(const std::vector<pid_t>& adopted) {
  const double begin = now_s();
  if (begin < next_s_) return;
  MemorySnapshot snapshot{.at_s = begin, .processes = {}};
  std::map<FileId, double> written;
  bool hides = false, child_hides = false;
  for (const pid_t pid : live::family_of(root_, adopted)) {
    const std::string folder = "/proc/" + std::to_string(pid);
    ProcessMemory process{static_cast<std::uint32_t>(pid), resident_mappings(live::text_of_proc_file(folder + "/smaps")),
                          figure_in(folder + "/status", "VmPTE:")};
    add_open_files(folder + "/fd/", written);
    mark_files_in_tmpfs(process.mappings, tmpfs_, [&folder] { return live::text_of_proc_file(folder + "/mountinfo"); });
    if (!process.mappings.empty())
      snapshot.processes.push_back(std::move(process));
    else if (is_hidden(folder + "/smaps"))
      (pid == root_ ? hides : child_hides) = true;
  }
  add_closed_files(written);
  std::vector<FileInTmpfs> files;
  for (const auto& [id, bytes] : written) files.push_back({.device = id.first, .inode = id.second, .bytes = bytes});
  snapshot.files_bytes = unmapped_bytes(files, snapshot.processes);
  ++looks_;
  hidden_looks_ += hides ? 1 : 0;
  hidden_child_looks_ += child_hides ? 1 : 0;
  const double ended = now_s();
  next_s_ = ended + std::max(pause_s_, (ended - begin) * (1 / kSnapshotShare - 1));
  if (snapshot.processes.empty()) return;
  snapshots_.push_back(std::move(snapshot));
  if (snapshots_.size() >= kMostSnapshots) thin_out();
}

void MemoryWatch::add_open_files(const std::string& folder, std::map<FileId, double>& bytes) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string& link = at->path().native();
    if (!is_open_for_writing(link)) continue;
    const auto file = regular_file(link);
    if (!file) continue;
    const auto [is_tmpfs, is_new] = is_tmpfs_.try_emplace(file->device, false);
    if (is_new) is_tmpfs->second = lies_in_tmpfs(link);
    if (!is_tmpfs->second) continue;
    bytes[{file->device, file->inode}] = file->bytes;
    if (std::string& name = names_[{file->device, file->inode}]; name.empty()) {
      std::error_code unreadable;
      name = std::filesystem::read_symlink(link, unreadable);
    }
  }
}

// A file that was closed is there until somebody removes it.
void MemoryWatch::add_closed_files(std::map<FileId, double>& bytes) {
  std::erase_if(names_, [&bytes](const auto& named) {
    const auto& [id, name] = named;
    if (bytes.contains(id)) return false;
    const auto file = regular_file(name);
    if (!file || FileId(file->device, file->inode) != id) return true;
    bytes[id] = file->bytes;
    return false;
  });
}

void MemoryWatch::thin_out() {
  std::vector<MemorySnapshot> kept;
  for (std::size_t i = 0; i < snapshots_.size(); i += 2) kept.push_back(std::move(snapshots_[i]));
  snapshots_ = std::move(kept);
  pause_s_ *= 2;
}

}  // namespace freehold::doctor
