// SPDX-License-Identifier: MIT
// Parses the values of options: lists, numbers within limits, names out of a fixed set. Each function throws
// Failure(kExitRefused) with one line that names the option.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/support/failure.hpp"
#include "tools/support/names.hpp"

namespace freehold::inline tools {

// The words between commas, none of them empty.
[[nodiscard]] std::vector<std::string> split_list(const std::string& option, const std::string& text);
[[nodiscard]] std::uint32_t parse_number(const std::string& option, const std::string& text, std::uint32_t least,
                                         std::uint32_t most);
// Leaves `value` as it is if the option was not given.
void parse_into(auto& value, const std::string& option, const std::optional<std::string>& text, std::uint32_t least,
                std::uint32_t most) {
  if (text) value = parse_number(option, *text, least, most);
}
// "1,2,6" and `always` -> sorted, each once.
[[nodiscard]] std::vector<std::uint32_t> parse_numbers(const std::string& option, const std::string& text,
                                                       std::uint32_t least, std::uint32_t most,
                                                       std::vector<std::uint32_t> always = {});

[[noreturn]] void refuse_name(const std::string& option, const std::string& name,
                              const std::vector<std::string_view>& known);

// "compute,memory" -> the values of these names, in the order of `all`, each once.
template <class T>
[[nodiscard]] std::vector<T> parse_names(const std::string& option, const std::string& text, const auto& all) {
  std::vector<T> chosen;
  for (const std::string& word : split_list(option, text)) {
    const auto found = std::ranges::find_if(all, [&](T value) { return name_of(value) == word; });
    if (found == all.end()) {
      std::vector<std::string_view> names;
      for (const T known : all) names.push_back(name_of(known));
      refuse_name(option, word, names);
    }
    chosen.push_back(*found);
  }
  std::ranges::sort(chosen);
  chosen.erase(std::ranges::unique(chosen).begin(), chosen.end());
  return chosen;
}

}  // namespace freehold::inline tools
