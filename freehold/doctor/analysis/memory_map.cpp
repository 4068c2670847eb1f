// SPDX-License-Identifier: MIT
#include "freehold/doctor/analysis/memory_map.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace freehold::doctor {
namespace {

bool parse_hex(std::string_view digits, std::uint64_t& number) {
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
}

std::string_view next_word(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), word.size() + 1));
  return word;
}

// "7f00-7f10 r-xp 00001000 fd:00 4711      /usr/lib/x y.so"
std::optional<CodeMapping> mapping_in(std::string_view line) {
  const std::size_t path = line.find('/');
  if (path == std::string_view::npos) return std::nullopt;
  CodeMapping mapping{.file = std::string(line.substr(path))};
  const std::string_view range = next_word(line), rights = next_word(line), offset = next_word(line);
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos || rights.size() < 3 || rights[2] != 'x') return std::nullopt;
  const bool is_whole = parse_hex(range.substr(0, dash), mapping.begin) && parse_hex(range.substr(dash + 1), mapping.end) &&
                        parse_hex(offset, mapping.offset) && mapping.begin < mapping.end;
  return is_whole ? std::optional(std::move(mapping)) : std::nullopt;
}

}  // namespace

std::vector<CodeMapping> code_mappings(const std::string& maps) {
  std::vector<CodeMapping> mappings;
  for (std::string_view rest = maps; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (auto mapping = mapping_in(line)) mappings.push_back(*std::move(mapping));
  }
  return mappings;
}

std::set<std::string> files_of(const std::vector<CodeMapping>& mappings) {
  std::set<std::string> files;
  for (const CodeMapping& mapping : mappings) files.insert(mapping.file);
  return files;
}

}  // namespace freehold::doctor
