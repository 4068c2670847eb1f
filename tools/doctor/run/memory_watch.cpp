// SPDX-License-Identifier: MIT
#include "tools/doctor/run/memory_watch.hpp"

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

#include "tools/doctor/run/child.hpp"
#include "tools/live/proc_folder.hpp"
#include "tools/live/process.hpp"

namespace freehold::doctor {
namespace {

constexpr double kSnapshotsEvery_s = 0.008;
constexpr double kSnapshotShare = 0.1;       // share of the time, that looking may take
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
  std::pair<std::uint64_t, std::uint64_t> id;  // device and inode
  double bytes = 0;
  std::string name = {};
};
// None: it is something else than a regular file.
std::optional<Seen> regular(const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return std::nullopt;
  constexpr double kStatBlock = 512;
  return Seen{{std::uint64_t{major(info.st_dev)} << 32 | minor(info.st_dev), info.st_ino},
              kStatBlock * static_cast<double>(info.st_blocks)};
}
std::optional<Seen> regular_file(const std::string& name) {
  struct stat info{};
  return ::stat(name.c_str(), &info) == 0 ? regular(info) : std::nullopt;
}

bool is_open_for_writing(const std::string& link) {
  struct stat info{};
  return ::lstat(link.c_str(), &info) == 0 && (info.st_mode & S_IWUSR) != 0;
}

// Says what a link leads to, if that is a regular file in tmpfs. The descriptor may be another file's at any moment, so all
// is asked of what was opened once.
std::optional<Seen> file_in_tmpfs(const std::string& link, std::map<std::uint64_t, bool>& is_tmpfs) {
  const int fd = ::open(link.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  struct stat info{};
  struct statfs system{};
  std::optional<Seen> file = ::fstat(fd, &info) == 0 ? regular(info) : std::nullopt;
  if (file && !is_tmpfs.contains(file->id.first) && ::fstatfs(fd, &system) == 0)
    is_tmpfs[file->id.first] = system.f_type == TMPFS_MAGIC;
  const auto known = file ? is_tmpfs.find(file->id.first) : is_tmpfs.end();
  if (known == is_tmpfs.end() || !known->second) file.reset();
  std::error_code error;
  if (file) file->name = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error);
  ::close(fd);
  return file;
}

// Calls `act` with the name of each entry. A folder that changes, or goes, is no error.
template <typename Act>
void for_each_in(const std::filesystem::path& folder, const Act& act) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    act(at->path().native());
}

}  // namespace

MemoryWatch::MemoryWatch(pid_t root, std::function<void(pid_t)> and_look)
    : root_(root), and_look_(std::move(and_look)), pause_s_(kSnapshotsEvery_s) {
  for_each_in("/proc/self/fd", [this](const std::string& link) {
    if (const auto file = regular_file(link)) of_caller_.insert(file->id);
  });
}

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
  if (and_look_) and_look_(root_);
  const double ended = now_s();
  next_s_ = ended + std::max(pause_s_, (ended - begin) * (1 / kSnapshotShare - 1));
  if (snapshot.processes.empty()) return;
  snapshots_.push_back(std::move(snapshot));
  if (snapshots_.size() >= kMostSnapshots) thin_out();
}

void MemoryWatch::add_open_files(const std::string& folder, std::map<FileId, double>& bytes) {
  for_each_in(folder, [&](const std::string& link) {
    if (!is_open_for_writing(link)) return;
    const auto file = file_in_tmpfs(link, is_tmpfs_);
    if (!file || of_caller_.contains(file->id)) return;
    bytes[file->id] = file->bytes;
    names_[file->id] = file->name;  // it may have been renamed since the last look
  });
}

// A file that was closed is there until somebody removes it. One that was renamed since is looked for in its folder.
void MemoryWatch::add_closed_files(std::map<FileId, double>& bytes) {
  std::map<std::filesystem::path, std::set<FileId>> missing;
  std::erase_if(names_, [&](const auto& named) {
    const auto& [id, name] = named;
    if (bytes.contains(id)) return false;
    const auto file = regular_file(name);
    const bool is_there = file && file->id == id;
    if (is_there)
      bytes[id] = file->bytes;
    else
      missing[std::filesystem::path(name).parent_path()].insert(id);
    return !is_there;
  });
  for (const auto& [folder, ids] : missing) {
    for_each_in(folder, [&](const std::string& name) {
      const auto file = regular_file(name);
      if (!file || !ids.contains(file->id)) return;
      bytes[file->id] = file->bytes;
      names_[file->id] = name;
    });
  }
}

void MemoryWatch::thin_out() {
  std::vector<MemorySnapshot> kept;
  for (std::size_t i = 0; i < snapshots_.size(); i += 2) kept.push_back(std::move(snapshots_[i]));
  snapshots_ = std::move(kept);
  pause_s_ *= 2;
}

}  // namespace freehold::doctor
