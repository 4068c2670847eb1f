// SPDX-License-Identifier: MIT
#include "freehold/doctor/analysis/memory_snapshot.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>

#include "freehold/doctor/analysis/maps_words.hpp"

namespace freehold::doctor {
namespace {

constexpr std::string_view kResident = "Pss:";

// "7f00-7f10 rw-p 00000000 00:00 0      [heap]"; none for a line of figures.
std::optional<ResidentMapping> mapping_of(std::string_view line) {
  ResidentMapping mapping;
  const std::string_view range = next_word(line);
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos || !parse_hex(range.substr(0, dash), mapping.begin) ||
      !parse_hex(range.substr(dash + 1), mapping.end) || mapping.end <= mapping.begin)
    return std::nullopt;
  mapping.rights = next_word(line);
  if (mapping.rights.size() != 4) return std::nullopt;
  for (int skipped = 0; skipped < 3; ++skipped) next_word(line);  // offset, device, inode
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
      const std::string_view figure = next_word(line);
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
