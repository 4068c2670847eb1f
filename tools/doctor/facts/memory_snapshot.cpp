// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/memory_snapshot.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>

#include "tools/live/maps_words.hpp"

namespace freehold::doctor {
namespace {

constexpr std::string_view kResident = "Pss:";

// "fd:00" of smaps, "253:0" of mountinfo; 0: none, or damaged.
constexpr int kHex = 16, kDecimal = 10;
std::uint64_t device_of(std::string_view text, int base) {
  const auto number = [base](std::string_view digits) -> std::uint64_t {
    std::uint32_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    return value;
  };
  const std::size_t colon = text.find(':');
  return colon == std::string_view::npos ? 0 : number(text.substr(0, colon)) << 32 | number(text.substr(colon + 1));
}

// "36 35 0:33 / /tmp rw,nosuid shared:1 - tmpfs tmpfs rw"
void add_mounts(std::string_view mountinfo, TmpfsDevices& devices) {
  while (!mountinfo.empty()) {
    std::string_view line = mountinfo.substr(0, mountinfo.find('\n'));
    mountinfo.remove_prefix(std::min(mountinfo.size(), line.size() + 1));
    std::string_view type = line.substr(std::min(line.size(), line.find(" - ")));
    live::next_word(line);  // the mount, and its parent
    live::next_word(line);
    const std::uint64_t device = device_of(live::next_word(line), kDecimal);
    live::next_word(type);  // "-"
    devices.known.insert(device);
    if (live::next_word(type) == "tmpfs") devices.tmpfs.insert(device);
  }
}

// "7f00-7f10 rw-p 00000000 00:00 0      [heap]"; none for a line of figures.
std::optional<ResidentMapping> mapping_of(std::string_view line) {
  ResidentMapping mapping;
  const std::string_view range = live::next_word(line);
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos || !live::parse_hex(range.substr(0, dash), mapping.begin) ||
      !live::parse_hex(range.substr(dash + 1), mapping.end) || mapping.end <= mapping.begin)
    return std::nullopt;
  mapping.rights = live::next_word(line);
  if (mapping.rights.size() != 4) return std::nullopt;
  live::next_word(line);  // offset
  mapping.device = device_of(live::next_word(line), kHex);
  const std::string_view inode = live::next_word(line);
  std::from_chars(inode.data(), inode.data() + inode.size(), mapping.inode);
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
  mapping.name = line;
  return mapping;
}

}  // namespace

double MemorySnapshot::bytes() const {
  double sum = 0;
  for (const ProcessMemory& process : processes) {
    sum += process.page_table_bytes;
    for (const ResidentMapping& mapping : process.mappings) sum += mapping.resident_bytes;
  }
  return sum;
}

std::vector<ResidentMapping> resident_mappings(const std::string& smaps) {
  std::vector<ResidentMapping> mappings;
  bool is_whole = false;
  for (std::string_view rest = smaps; !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.starts_with(kResident)) {
      line.remove_prefix(kResident.size());
      const std::string_view figure = live::next_word(line);
      std::uint64_t kib = 0;
      if (is_whole && std::from_chars(figure.data(), figure.data() + figure.size(), kib).ec == std::errc())
        mappings.back().resident_bytes = static_cast<double>(kib) * 1024;
    } else if (!line.empty() && !(line.front() >= 'A' && line.front() <= 'Z')) {
      auto mapping = mapping_of(line);
      is_whole = mapping.has_value();
      if (mapping) mappings.push_back(*std::move(mapping));
    }
  }
  return mappings;
}

void mark_files_in_tmpfs(std::vector<ResidentMapping>& mappings, TmpfsDevices& devices,
                         const std::function<std::string()>& mountinfo) {
  for (ResidentMapping& mapping : mappings) {
    if (mapping.device == 0) continue;
    if (!devices.known.contains(mapping.device)) {
      const std::string mounts = mountinfo();
      if (mounts.empty()) continue;  // the process has ended
      add_mounts(mounts, devices);
      devices.known.insert(mapping.device);  // the kernel has file systems that are not mounted
    }
    mapping.is_in_tmpfs = devices.tmpfs.contains(mapping.device);
  }
}

double unmapped_bytes(const std::vector<FileInTmpfs>& files, const std::vector<ProcessMemory>& processes) {
  double sum = 0;
  for (const FileInTmpfs& file : files) {
    double mapped = 0;
    for (const ProcessMemory& process : processes)
      for (const ResidentMapping& mapping : process.mappings)
        if (mapping.inode == file.inode && mapping.device == file.device) mapped += mapping.resident_bytes;
    sum += std::max(0.0, file.bytes - mapped);
  }
  return sum;
}

std::vector<double> weights_of(const std::vector<MemorySnapshot>& snapshots) {
  std::vector<double> weights(snapshots.size(), 0);
  if (snapshots.size() == 1) weights.front() = 1;
  for (std::size_t i = 1; i < snapshots.size(); ++i) {
    const double half = (snapshots[i].at_s - snapshots[i - 1].at_s) / 2;
    weights[i - 1] += half;
    weights[i] += half;
  }
  return weights;
}

}  // namespace freehold::doctor
