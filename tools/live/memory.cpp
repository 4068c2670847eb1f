// SPDX-License-Identifier: MIT
#include "tools/live/memory.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "freehold/alloc/observe/live_figures.hpp"
#include "freehold/os/process_memory.hpp"
#include "freehold/sync/live_list.hpp"
#include "tools/live/memory_map.hpp"
#include "tools/live/process.hpp"

namespace freehold::live {
namespace {
namespace fs = std::filesystem;

constexpr std::size_t kChunkBytes = std::size_t{256} << 10;
constexpr std::size_t kMostMarks = 256;  // a process has one engine, and a list of each kind for each of its libraries
static_assert(alloc::kLiveAlignment == sync::kLiveListAlignment);

std::optional<LiveMemory::Kind> kind_of(const std::byte* from, std::uint64_t address) {
  std::uint64_t mark[2];
  std::memcpy(mark, from, sizeof mark);
  if (mark[0] == alloc::live_mark(0, address) && mark[1] == alloc::live_mark(1, address)) return LiveMemory::Kind::kEngine;
  if (mark[0] == sync::live_list_mark(0, address) && mark[1] == sync::live_list_mark(1, address))
    return LiveMemory::Kind::kList;
  return std::nullopt;
}

// Drops a partial character at the end of a text of UTF-8; other texts lose at most such an end.
void drop_partial_character(std::string& text) {
  std::size_t behind = 0;  // bytes that continue the last character
  while (behind < 3 && behind < text.size() && (static_cast<unsigned char>(text[text.size() - 1 - behind]) & 0xC0) == 0x80)
    ++behind;
  if (behind == text.size()) return;
  const auto first = static_cast<unsigned char>(text[text.size() - 1 - behind]);
  const std::size_t wanted = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 0;
  if (behind < wanted) text.resize(text.size() - 1 - behind);
}

}  // namespace

LiveMemory::LiveMemory(pid_t pid, std::size_t most_bytes) : pid_(thread_with_memory(pid)), bytes_left_(most_bytes) {}

bool LiveMemory::may_read(std::uint64_t bytes) {
  if (bytes > read_left_) {
    error_ = E2BIG;
    return false;
  }
  read_left_ -= bytes;
  errno = 0;
  return true;
}

bool LiveMemory::read(std::uint64_t address, void* to, std::size_t bytes) {
  if (!may_read(bytes)) return false;
  if (os::read_process_memory(pid_, address, to, bytes)) return true;
  error_ = errno != 0 ? errno : EFAULT;  // a part of it was read
  return false;
}

bool LiveMemory::write(std::uint64_t address, std::uint64_t value) {
  if (os::write_process_memory(pid_, address, &value, sizeof value)) return true;
  error_ = errno;
  return false;
}

bool LiveMemory::count_bits(std::uint64_t address, std::uint64_t words, std::uint64_t& bits) {
  constexpr std::size_t kPiece = kChunkBytes / sizeof(std::uint64_t);
  std::vector<std::uint64_t> piece;
  for (; words > 0; words -= piece.size(), address += piece.size() * sizeof(std::uint64_t)) {
    piece.resize(std::min<std::uint64_t>(words, kPiece));
    if (!read(address, piece)) return false;
    for (const std::uint64_t word : piece) bits += static_cast<std::uint64_t>(std::popcount(word));
  }
  return true;
}

bool LiveMemory::count_bits(const std::vector<std::uint64_t>& addresses, std::size_t words, std::uint64_t& bits) {
  std::vector<std::uint64_t> copies(addresses.size() * words);
  if (!may_read(copies.size() * sizeof(std::uint64_t))) return false;
  if (!os::read_process_memory(pid_, addresses.data(), addresses.size(), copies.data(), words * sizeof(std::uint64_t))) {
    error_ = errno != 0 ? errno : EFAULT;
    return false;
  }
  for (const std::uint64_t word : copies) bits += static_cast<std::uint64_t>(std::popcount(word));
  return true;
}

std::string LiveMemory::text(std::uint64_t address, std::size_t most) {
  constexpr std::size_t kPage = 4096;  // the memory behind its end may not be there
  std::string text;
  while (address != 0 && text.size() < most) {
    std::string part(std::min(most - text.size(), kPage - static_cast<std::size_t>(address % kPage)), '\0');
    if (!read(address, part.data(), part.size())) return {};
    const std::size_t end = part.find('\0');
    text += part.substr(0, end);
    if (end != std::string::npos) break;
    address += part.size();
  }
  if (text.size() == most) drop_partial_character(text);
  return text;
}

std::vector<LiveMemory::Mark> LiveMemory::marks(const std::string& maps) {
  std::error_code no_link;
  const std::string program = fs::read_symlink(fs::path("/proc") / std::to_string(pid_) / "exe", no_link);
  // The likely ones first: others may have more data than is looked through.
  const auto rank = [&program](const DataMapping& mapping) {
    if (fs::path(mapping.file).filename().string().starts_with("libfreehold")) return 0;
    return mapping.file == program ? 1 : 2;
  };
  std::vector<DataMapping> mappings = data_mappings(maps);
  // Leaves out mapped files of data: looking would read them.
  const std::set<std::string> files = files_of(code_mappings(maps));
  std::erase_if(mappings, [&files](const DataMapping& mapping) { return !files.contains(mapping.file); });
  std::ranges::sort(mappings, {}, [&rank](const DataMapping& mapping) { return std::pair(rank(mapping), mapping.begin); });
  std::vector<Mark> marks;
  std::vector<std::byte> chunk;
  for (const DataMapping& mapping : mappings) {
    for (std::uint64_t at = mapping.begin; at < mapping.end && bytes_left_ > 0; at += chunk.size()) {
      chunk.resize(std::min({kChunkBytes, static_cast<std::size_t>(mapping.end - at), bytes_left_}));
      bytes_left_ -= chunk.size();
      if (!read(at, chunk.data(), chunk.size())) break;
      // Mappings begin at a page, so that a mark, aligned as it is, lies in one chunk.
      for (std::size_t i = 0; i + 2 * sizeof(std::uint64_t) <= chunk.size(); i += alloc::kLiveAlignment)
        if (const auto kind = kind_of(chunk.data() + i, at + i); kind && marks.size() < kMostMarks)
          marks.push_back({*kind, at + i});
    }
  }
  return marks;
}

}  // namespace freehold::live
