// SPDX-License-Identifier: MIT
// Makes the words of a program that is to be started: its environment, from this process's own, and the arrays of pointers
// that execve() and posix_spawn() take. To be made before a fork, after which nothing may be allocated.
// Threads: any, while none changes the environment (setenv). Cost: a copy of the environment.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace freehold::os {

using Variables = std::vector<std::pair<std::string, std::string>>;

// This process's environment, each entry "NAME=VALUE", without the variables of `unset`, and with those of `set` at its end,
// each once, whatever their value is here.
[[nodiscard]] inline std::vector<std::string> environment_with(const Variables& set,
                                                               const std::vector<std::string_view>& unset = {}) {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    const bool is_set = std::ranges::any_of(set, [name](const auto& one) { return one.first == name; });
    if (!is_set && std::ranges::find(unset, name) == unset.end()) entries.emplace_back(text);
  }
  for (const auto& [name, value] : set) entries.emplace_back(name).append("=").append(value);
  return entries;
}

// Pointers to the texts, and a null one behind them. They last as long as the texts are not changed.
[[nodiscard]] inline std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace freehold::os
