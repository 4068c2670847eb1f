// SPDX-License-Identifier: MIT
// The words of a line of /proc/PID/maps and smaps.
#pragma once
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace freehold::live {

// Takes the next word off the line; empty: no word is left.
inline std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

// False: these are not digits alone, or too many.
[[nodiscard]] inline bool parse_hex(std::string_view digits, std::uint64_t& number) {
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
}

}  // namespace freehold::live
