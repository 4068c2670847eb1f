// SPDX-License-Identifier: MIT
#include "tools/support/arguments.hpp"

#include <fmt/format.h>

#include <charconv>

#include "tools/support/failure.hpp"

namespace freehold::inline tools {

std::vector<std::string> split_list(const std::string& option, const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (std::ranges::find(words, "") != words.end()) {
    throw Failure(kExitRefused, fmt::format("{}: an empty entry in '{}'", option, printable(text)));
  }
  return words;
}

std::uint32_t parse_number(const std::string& option, const std::string& text, std::uint32_t least, std::uint32_t most) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw Failure(kExitRefused, fmt::format("{}: '{}' is not a number from {} to {}", option, printable(text), least, most));
  }
  return value;
}

std::vector<std::uint32_t> parse_numbers(const std::string& option, const std::string& text, std::uint32_t least,
                                         std::uint32_t most, std::vector<std::uint32_t> always) {
  for (const std::string& word : split_list(option, text)) always.push_back(parse_number(option, word, least, most));
  std::ranges::sort(always);
  always.erase(std::ranges::unique(always).begin(), always.end());
  return always;
}

void refuse_name(const std::string& option, const std::string& name, const std::vector<std::string_view>& known) {
  throw Failure(kExitRefused, fmt::format("{}: '{}' is not one of {}", option, printable(name), fmt::join(known, ", ")));
}

}  // namespace freehold::inline tools
