// SPDX-License-Identifier: MIT
#include "tools/live/memory_map.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "tools/live/maps_words.hpp"

namespace freehold::live {
namespace {

struct Line {
  std::uint64_t begin = 0, end = 0, offset = 0;
  std::string_view rights;  // "rw-p"
  std::string_view name;    // a path, "[heap]" or nothing
};

// "7f00-7f10 r-xp 00001000 fd:00 4711      /usr/lib/x y.so"
std::optional<Line> parsed(std::string_view text) {
  Line line;
  const std::string_view range = next_word(text);
  line.rights = next_word(text);
  const std::string_view offset = next_word(text);
  next_word(text);  // device
  next_word(text);  // inode
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
  line.name = text;
  const std::size_t dash = range.find('-');
  const bool is_whole = dash != std::string_view::npos && line.rights.size() >= 4 &&
                        parse_hex(range.substr(0, dash), line.begin) && parse_hex(range.substr(dash + 1), line.end) &&
                        parse_hex(offset, line.offset) && line.begin < line.end;
  return is_whole ? std::optional(line) : std::nullopt;
}

// Calls f(line) for each that is whole.
void for_each_line(std::string_view maps, auto&& f) {
  while (!maps.empty()) {
    const std::string_view text = maps.substr(0, maps.find('\n'));
    maps.remove_prefix(std::min(maps.size(), text.size() + 1));
    if (const auto line = parsed(text)) f(*line);
  }
}

}  // namespace

std::vector<CodeMapping> code_mappings(const std::string& maps) {
  std::vector<CodeMapping> mappings;
  for_each_line(maps, [&](const Line& line) {
    if (line.rights[2] == 'x' && line.name.starts_with('/'))
      mappings.push_back({line.begin, line.end, line.offset, std::string(line.name)});
  });
  return mappings;
}

std::vector<DataMapping> data_mappings(const std::string& maps) {
  std::vector<DataMapping> mappings;
  for_each_line(maps, [&](const Line& line) {
    if (!line.rights.starts_with("rw") || line.rights[3] != 'p') return;
    if (line.name.starts_with('/')) mappings.push_back({line.begin, line.end, std::string(line.name)});
    // The heap may follow a program's .bss so closely that both are one.
    else if ((line.name.empty() || line.name == "[heap]") && !mappings.empty() && mappings.back().end == line.begin)
      mappings.push_back({line.begin, line.end, mappings.back().file});
  });
  return mappings;
}

std::set<std::string> files_of(const std::vector<CodeMapping>& mappings) {
  std::set<std::string> files;
  for (const CodeMapping& mapping : mappings) files.insert(mapping.file);
  return files;
}

}  // namespace freehold::live
