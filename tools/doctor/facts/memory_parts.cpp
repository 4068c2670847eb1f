// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/memory_parts.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

namespace freehold::doctor {
namespace {

constexpr std::uint64_t kArenaBytes = std::uint64_t{64} << 20;  // of glibc's arenas but the main one: their alignment
constexpr std::uint64_t kMostGuard = std::uint64_t{64} << 10;   // below a stack

enum class Owner : std::uint8_t { kMalloc, kMappings, kStacks, kFiles, kShared, kDoctor };

bool has_rights(const ResidentMapping& mapping) { return mapping.rights[0] != '-' || mapping.rights[1] != '-'; }
bool is_of_doctor(const std::string& name) {
  return name.find("/libfreehold-p") != std::string::npos || name.ends_with(".trace");
}
bool is_shared_memory(const std::string& name) {
  return std::ranges::any_of(std::array{"/dev/shm/", "/memfd:", "/SYSV", "/dev/zero"},
                             [&](const char* prefix) { return name.starts_with(prefix); });
}

bool has_block(const SeenBlocks* seen, const ResidentMapping& mapping, bool is_glibc) {
  if (seen == nullptr) return false;
  for (auto at = std::ranges::lower_bound(seen->addresses, mapping.begin); at != seen->addresses.end() && *at < mapping.end;
       ++at)
    if (!is_glibc || *at % 4096 != 16) return true;  // another malloc's may have a mapping for itself
  return false;
}

class Mappings {
 public:
  Mappings(const std::vector<ResidentMapping>& all, const SeenBlocks* seen, bool is_glibc)
      : all_(all), seen_(seen), is_glibc_(is_glibc) {
    for (const ResidentMapping& mapping : all)
      if (mapping.is_in_tmpfs && mapping.rights[2] == 'x') programs_in_tmpfs_.insert(mapping.name);
  }

  [[nodiscard]] Owner owner(std::size_t i) const {
    const ResidentMapping& mapping = all_[i];
    const std::string& name = mapping.name;
    if (is_of_doctor(name)) return Owner::kDoctor;
    // A program or library that lies in tmpfs is code all the same: it was there before.
    if (is_shared_memory(name) || (mapping.is_in_tmpfs && !programs_in_tmpfs_.contains(name))) return Owner::kShared;
    if (name == "[heap]" || name.starts_with("[anon:freehold")) return Owner::kMalloc;
    if (name.starts_with("[stack")) return Owner::kStacks;
    if (!name.empty() && !name.starts_with("[anon")) return Owner::kFiles;
    if (is_arena(i) || has_block(seen_, mapping, is_glibc_)) return Owner::kMalloc;
    if (is_behind_variables(i)) return is_of_doctor(all_[i - 1].name) ? Owner::kDoctor : Owner::kFiles;
    return is_stack(i) ? Owner::kStacks : Owner::kMappings;
  }

 private:
  // The rest of its place is reserved behind it.
  [[nodiscard]] bool is_arena(std::size_t i) const {
    if (!is_glibc_ || all_[i].begin % kArenaBytes != 0 || i + 1 >= all_.size()) return false;
    const ResidentMapping& next = all_[i + 1];
    return next.begin == all_[i].end && !has_rights(next) && next.end % kArenaBytes == 0;
  }
  // Variables without values lie behind those with.
  [[nodiscard]] bool is_behind_variables(std::size_t i) const {
    if (i == 0) return false;
    const ResidentMapping& before = all_[i - 1];
    return before.end == all_[i].begin && before.name.starts_with('/') && before.rights.starts_with("rw") &&
           before.rights.ends_with('p') && has_rights(all_[i]);
  }
  // Below it is a guard.
  [[nodiscard]] bool is_stack(std::size_t i) const {
    if (i == 0) return false;
    const ResidentMapping& guard = all_[i - 1];
    return guard.end == all_[i].begin && !has_rights(guard) && guard.name.empty() && guard.end - guard.begin <= kMostGuard;
  }

  const std::vector<ResidentMapping>& all_;
  const SeenBlocks* seen_;
  bool is_glibc_;
  std::set<std::string_view> programs_in_tmpfs_;
};

// Adds up, of a mapping that the program made or malloc did, the bytes of blocks that are mapped for themselves.
double mapped_within(const ResidentMapping& mapping, const LiveData* live) {
  double sum = 0;
  if (live == nullptr) return 0;
  for (const LargeBlock& block : live->mapped) {
    const std::uint64_t begin = std::max(block.begin, mapping.begin), end = std::min(block.end, mapping.end);
    if (begin < end) sum += static_cast<double>(end - begin);
  }
  return sum;
}

}  // namespace

std::string_view name_of(MemoryPart part) noexcept {
  switch (part) {
    case MemoryPart::kLive: return "live";
    case MemoryPart::kRounding: return "rounding";
    case MemoryPart::kArenas: return "arenas";
    case MemoryPart::kCaches: return "caches";
    case MemoryPart::kFreePages: return "free-pages";
    case MemoryPart::kHoles: return "holes";
    case MemoryPart::kMappings: return "mappings";
    case MemoryPart::kStacks: return "stacks";
    case MemoryPart::kFiles: return "files";
    case MemoryPart::kShared: return "shared-memory";
    case MemoryPart::kPageTables: return "page-tables";
  }
  __builtin_unreachable();
}

bool is_of_malloc(MemoryPart part) noexcept { return part >= MemoryPart::kRounding && part <= MemoryPart::kHoles; }

double MemoryParts::sum() const { return std::accumulate(bytes.begin(), bytes.end(), free_bytes); }

double MemoryParts::overhead() const {
  double all = free_bytes;
  for (std::size_t i = 0; i < kMemoryParts; ++i)
    if (is_of_malloc(static_cast<MemoryPart>(i))) all += bytes[i];
  return all;
}

void MemoryParts::add(const MemoryParts& other, double times) {
  for (std::size_t i = 0; i < kMemoryParts; ++i) bytes[i] += times * other.bytes[i];
  free_bytes += times * other.free_bytes;
  untouched_bytes += times * other.untouched_bytes;
}

MemoryParts parts_of(const ProcessMemory& process, const LiveData* live, const SeenBlocks* seen, bool is_glibc) {
  MemoryParts parts;
  parts[MemoryPart::kPageTables] = process.page_table_bytes;
  double in_malloc = 0, mapped = 0, mapped_resident = 0;
  const Mappings mappings(process.mappings, seen, is_glibc);
  for (std::size_t i = 0; i < process.mappings.size(); ++i) {
    const ResidentMapping& mapping = process.mappings[i];
    const double resident = mapping.resident_bytes;
    switch (mappings.owner(i)) {
      case Owner::kMalloc: in_malloc += resident; break;
      case Owner::kStacks: parts[MemoryPart::kStacks] += resident; break;
      case Owner::kFiles: parts[MemoryPart::kFiles] += resident; break;
      case Owner::kShared: parts[MemoryPart::kShared] += resident; break;
      case Owner::kDoctor: break;
      case Owner::kMappings: {
        const double blocks = mapped_within(mapping, live), of_blocks = std::min(blocks, resident);
        mapped += blocks;
        mapped_resident += of_blocks;
        parts[MemoryPart::kMappings] += resident - of_blocks;
        break;
      }
    }
  }
  const double mapped_rounding = live == nullptr ? 0 : std::min(live->mapped_rounding, mapped_resident);
  const double in_heap = live == nullptr ? 0 : std::min(live->bytes, in_malloc);
  const double rounding = live == nullptr ? 0 : std::min(live->rounding_bytes, in_malloc - in_heap);
  parts[MemoryPart::kLive] = in_heap + mapped_resident - mapped_rounding;
  parts[MemoryPart::kRounding] = rounding + mapped_rounding;
  parts.free_bytes = in_malloc - in_heap - rounding;
  parts.untouched_bytes = mapped - mapped_resident;
  return parts;
}

MemoryParts parts_of(const MemorySnapshot& snapshot, std::span<const LiveData> live, std::span<const SeenBlocks> seen,
                     bool is_glibc) {
  MemoryParts sum;
  for (const ProcessMemory& process : snapshot.processes) {
    const auto one = std::ranges::find(live, process.pid, &LiveData::pid);
    const auto blocks =
        std::ranges::find_if(seen, [&](const SeenBlocks& each) { return each.is_of(process.pid, snapshot.at_s); });
    sum.add(parts_of(process, one == live.end() ? nullptr : &*one, blocks == seen.end() ? nullptr : &*blocks, is_glibc));
  }
  return sum;
}

MemoryParts divided(MemoryParts parts, const FreeSaved& saved) {
  const auto take = [&parts](double most) {
    const double taken = std::clamp(most, 0.0, parts.free_bytes);
    parts.free_bytes -= taken;
    return taken;
  };
  parts[MemoryPart::kArenas] += take(saved.by_one_arena);
  parts[MemoryPart::kCaches] += take(saved.without_caches);
  parts[MemoryPart::kFreePages] += take(saved.by_trimming);
  parts[MemoryPart::kHoles] += take(parts.free_bytes);
  return parts;
}

}  // namespace freehold::doctor
