// SPDX-License-Identifier: MIT
#include "tools/doctor/run/cpu_group.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "tools/live/proc_folder.hpp"

namespace freehold::doctor {
namespace {
namespace fs = std::filesystem;

// "4:memory,cpu:/a/b": whether the hierarchy has the CPU controller (version 2 has no list at all).
bool has_cpu(std::string_view controllers) {
  if (controllers.empty()) return true;
  for (std::size_t begin = 0; begin <= controllers.size();) {
    const std::size_t end = std::min(controllers.find(',', begin), controllers.size());
    if (controllers.substr(begin, end - begin) == "cpu") return true;
    begin = end + 1;
  }
  return false;
}

std::optional<double> number_in(const fs::path& file) {
  std::ifstream in(file);
  double number = 0;
  if (in >> number) return number;
  return std::nullopt;
}

// Version 2: "50000 100000" or "max 100000". Version 1: two files, -1 for none.
std::optional<double> quota_of(const fs::path& folder) {
  std::ifstream in(folder / "cpu.max");
  double quota = 0, period = 0;
  if (in >> quota >> period && quota > 0 && period > 0) return quota / period;
  const auto quota_us = number_in(folder / "cpu.cfs_quota_us");
  const auto period_us = number_in(folder / "cpu.cfs_period_us");
  if (quota_us && period_us && *quota_us > 0 && *period_us > 0) return *quota_us / *period_us;
  return std::nullopt;
}

double throttled_in(const fs::path& folder) {
  std::ifstream in(folder / "cpu.stat");
  std::string name;
  double value = 0;
  while (in >> name >> value) {
    if (name == "throttled_usec") return value / 1e6;
    if (name == "throttled_time") return value / 1e9;
  }
  return 0;
}

bool has_any_of_it(const fs::path& folder) {
  std::error_code error;
  for (const char* file : {"cpu.stat", "cpu.max", "cpu.cfs_quota_us"})
    if (fs::exists(folder / file, error)) return true;
  return false;
}

// The folder and all above it, up to `root`.
void add_branch(std::vector<fs::path>& folders, const fs::path& root, const fs::path& group) {
  const fs::path below = group.relative_path();
  for (fs::path folder = below.empty() ? root : root / below;; folder = folder.parent_path()) {
    if (has_any_of_it(folder)) folders.push_back(folder);
    if (folder == root || !folder.has_relative_path()) return;
  }
}

}  // namespace

CpuGroup::CpuGroup(const std::string& membership, const fs::path& root) : version_1_root_(root / "cpu") {
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    if (has_cpu(controllers)) add_branch(folders_, controllers.empty() ? root : version_1_root_, line.substr(second + 1));
  }
}

double CpuGroup::quota_cpus() const {
  double least = 0;
  for (const fs::path& folder : folders_) {
    if (const auto quota = quota_of(folder); quota && (least == 0 || *quota < least)) least = *quota;
  }
  return least;
}

double CpuGroup::throttled_s() const {
  double most = 0;
  for (const fs::path& folder : folders_) most = std::max(most, throttled_in(folder));
  return most;
}

bool CpuGroup::is_weighed() const {
  std::error_code error;
  return std::ranges::any_of(folders_, [&](const fs::path& folder) {
    return fs::exists(folder / "cpu.weight", error) ||
           (folder != version_1_root_ && fs::exists(folder / "cpu.shares", error));
  });
}

std::string membership_of(int pid) { return live::text_of_proc_file(live::proc_folder(pid) / "cgroup"); }

}  // namespace freehold::doctor
