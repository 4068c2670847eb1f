// SPDX-License-Identifier: MIT
#include "freehold/doctor/run/live_figures.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "freehold/doctor/analysis/memory_map.hpp"
#include "freehold/os/process_memory.hpp"

namespace freehold::doctor {
namespace {
namespace fs = std::filesystem;
using alloc::LiveDirectory;
using alloc::LiveEntry;

constexpr std::size_t kChunkBytes = std::size_t{256} << 10;
constexpr std::size_t kMostArrayBytes = std::size_t{1} << 20;  // of one entry

// A directory as it is copied; LiveDirectory itself holds atomics.
struct Head {
  std::uint64_t mark[2];
  std::uint32_t version, count;
};
static_assert(sizeof(Head) == offsetof(LiveDirectory, entries));

class Reader {
 public:
  Reader(pid_t pid, std::size_t most_bytes) : pid_(pid), bytes_left_(most_bytes) {}

  std::optional<LiveFigures> find_in(const DataMapping& mapping) {
    std::vector<std::byte> chunk;
    for (std::uint64_t at = mapping.begin; at < mapping.end && bytes_left_ > 0; at += chunk.size()) {
      chunk.resize(std::min({kChunkBytes, static_cast<std::size_t>(mapping.end - at), bytes_left_}));
      bytes_left_ -= chunk.size();
      if (!os::read_process_memory(pid_, at, chunk.data(), chunk.size())) return std::nullopt;
      // Mappings begin at a page, so that a mark, aligned as it is, lies in one chunk.
      for (std::size_t i = 0; i + sizeof Head::mark <= chunk.size(); i += alloc::kLiveAlignment) {
        if (!is_marked(chunk.data() + i, at + i)) continue;
        if (auto figures = read_directory(at + i)) return figures;
      }
    }
    return std::nullopt;
  }

 private:
  static bool is_marked(const std::byte* from, std::uint64_t address) {
    std::uint64_t mark[2];
    std::memcpy(mark, from, sizeof mark);
    return mark[0] == alloc::live_mark(0, address) && mark[1] == alloc::live_mark(1, address);
  }

  std::optional<LiveFigures> read_directory(std::uint64_t address) const {
    // After the mark was seen: the engine has written the rest before it.
    Head head{};
    if (!os::read_process_memory(pid_, address, &head, sizeof head)) return std::nullopt;
    if (head.version != alloc::kLiveVersion || head.count > alloc::kMostLiveEntries) return std::nullopt;
    std::vector<LiveEntry> entries(head.count);
    if (!os::read_process_memory(pid_, address + sizeof head, entries.data(), entries.size() * sizeof(LiveEntry)))
      return std::nullopt;
    LiveFigures figures;
    for (std::uint32_t figure = 0; figure < static_cast<std::uint32_t>(LiveFigure::kCount); ++figure) {
      const auto id = static_cast<LiveFigure>(figure);
      std::int64_t sum = 0;
      bool is_there = false;
      for (const LiveEntry& entry : entries) {
        if (entry.figure != id) continue;
        const auto part = sum_of(entry);
        if (!part) return std::nullopt;  // damaged, or the process has ended
        sum += *part;
        is_there = true;
      }
      if (is_there) figures.set(id, static_cast<std::uint64_t>(std::max<std::int64_t>(sum, 0)));
    }
    return figures;
  }

  [[nodiscard]] std::optional<std::int64_t> sum_of(const LiveEntry& entry) const {
    if (entry.bytes != 8 || entry.address % 8 != 0 || entry.count == 0) return std::nullopt;
    if (entry.count > 1 && (entry.stride < 8 || entry.stride % 8 != 0)) return std::nullopt;
    const std::size_t bytes = std::size_t{entry.count - 1} * entry.stride + entry.bytes;
    if (bytes > kMostArrayBytes) return std::nullopt;
    std::vector<std::byte> copy(bytes);
    if (!os::read_process_memory(pid_, entry.address, copy.data(), copy.size())) return std::nullopt;
    std::uint64_t sum = 0;  // wraps as the counters do
    for (std::size_t at = 0; at < bytes; at += std::max<std::size_t>(entry.stride, entry.bytes)) {
      std::uint64_t one = 0;
      std::memcpy(&one, copy.data() + at, sizeof one);
      sum += one;
    }
    return static_cast<std::int64_t>(sum);
  }

  pid_t pid_;
  std::size_t bytes_left_;
};

}  // namespace

std::optional<LiveFigures> read_live_figures(pid_t pid, const std::string& maps, std::size_t most_bytes) {
  std::error_code error;
  const std::string program = fs::read_symlink(fs::path("/proc") / std::to_string(pid) / "exe", error);
  // The likely ones first: others may have more data than is looked through.
  const auto rank = [&program](const DataMapping& mapping) {
    if (fs::path(mapping.file).filename().string().starts_with("libfreehold")) return 0;
    return mapping.file == program ? 1 : 2;
  };
  std::vector<DataMapping> mappings = data_mappings(maps);
  // Not files of data that are mapped: looking would read them.
  const std::set<std::string> files = files_of(code_mappings(maps));
  std::erase_if(mappings, [&files](const DataMapping& mapping) { return !files.contains(mapping.file); });
  std::ranges::sort(mappings, {}, [&rank](const DataMapping& mapping) { return std::pair(rank(mapping), mapping.begin); });
  Reader reader(pid, most_bytes);
  for (const DataMapping& mapping : mappings)
    if (auto figures = reader.find_in(mapping)) return figures;
  return std::nullopt;
}

}  // namespace freehold::doctor
