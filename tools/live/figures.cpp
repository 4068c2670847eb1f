// SPDX-License-Identifier: MIT
#include "tools/live/figures.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace freehold::live {
namespace {
using alloc::LiveDirectory;
using alloc::LiveEntry;

constexpr std::size_t kMostArrayBytes = std::size_t{1} << 20;  // largest array of one entry

// A directory as it is copied; LiveDirectory itself holds atomics.
struct Head {
  std::uint64_t mark[2];
  std::uint32_t version, count;
};
static_assert(sizeof(Head) == offsetof(LiveDirectory, entries));

class Reader {
 public:
  explicit Reader(LiveMemory& memory) : memory_(memory) {}

  std::optional<LiveFigures> read_directory(std::uint64_t address) const {
    const auto entries = entries_of(address);
    if (!entries) return std::nullopt;
    LiveFigures figures;
    for (std::uint32_t figure = 0; figure < static_cast<std::uint32_t>(LiveFigure::kCount); ++figure) {
      const auto id = static_cast<LiveFigure>(figure);
      std::uint64_t sum = 0;
      bool is_there = false;
      for (const LiveEntry& entry : *entries) {
        if (entry.figure != id) continue;
        const auto part = sum_of(entry);
        if (!part) return std::nullopt;  // damaged, or the process has ended
        sum += *part;
        is_there = true;
      }
      if (is_there) figures.set(id, static_cast<std::int64_t>(sum) < 0 ? 0 : sum);
    }
    return figures;
  }

  [[nodiscard]] std::optional<std::vector<LiveEntry>> entries_of(std::uint64_t address) const {
    // After the mark was seen: the engine has written the rest before it.
    Head head{};
    if (!memory_.read(address, head)) return std::nullopt;
    if (head.version != alloc::kLiveVersion || head.count > alloc::kMostLiveEntries) return std::nullopt;
    std::vector<LiveEntry> entries(head.count);
    if (!memory_.read(address + sizeof head, entries)) return std::nullopt;
    return entries;
  }

 private:
  [[nodiscard]] std::optional<std::uint64_t> sum_of(const LiveEntry& entry) const {
    const std::size_t width = entry.bytes;
    if ((width != 8 && width != 4) || entry.address % width != 0 || entry.count == 0) return std::nullopt;
    if (entry.count > 1 && (entry.stride < width || entry.stride % width != 0)) return std::nullopt;
    const std::size_t bytes = std::size_t{entry.count - 1} * entry.stride + width;
    if (bytes > kMostArrayBytes) return std::nullopt;
    std::vector<std::byte> copy(bytes);
    if (!memory_.read(entry.address, copy)) return std::nullopt;
    std::uint64_t sum = 0;  // wraps as the counters do
    for (std::size_t at = 0; at < bytes; at += std::max<std::size_t>(entry.stride, width)) {
      std::uint64_t one = 0;  // little-endian, as all machines here
      std::memcpy(&one, copy.data() + at, width);
      sum += one;
    }
    return sum;
  }

  LiveMemory& memory_;
};

}  // namespace

std::optional<LiveFigures> read_live_figures(LiveMemory& memory, std::uint64_t directory) {
  return Reader(memory).read_directory(directory);
}

std::uint64_t address_of_figure(LiveMemory& memory, std::uint64_t directory, LiveFigure figure) {
  const auto entries = Reader(memory).entries_of(directory);
  if (!entries) return 0;
  const auto entry = std::ranges::find(*entries, figure, &LiveEntry::figure);
  return entry == entries->end() || entry->bytes != sizeof(std::uint64_t) ? 0 : entry->address;
}

std::optional<LiveFigures> read_live_figures(pid_t pid, const std::string& maps, std::size_t most_bytes) {
  LiveMemory memory(pid, most_bytes);
  for (const LiveMemory::Mark& mark : memory.marks(maps))
    if (mark.kind == LiveMemory::Kind::kEngine)
      if (auto figures = read_live_figures(memory, mark.address)) return figures;
  return std::nullopt;
}

}  // namespace freehold::live
