// SPDX-License-Identifier: MIT
// A job as command-line words, for the worker process that does it, and back. `fields` is a tuple of pointers to the job's
// members, in the order of the words: texts, numbers, flags, and enumerations with names (cli/support/names.hpp).
#pragma once
#include <algorithm>
#include <concepts>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "cli/support/names.hpp"

namespace freehold::cli {

template <class T>
[[nodiscard]] std::string word_of(const T& value) {
  if constexpr (std::is_enum_v<T>) return std::string(name_of(value));
  if constexpr (std::integral<T>) return std::to_string(value);
  if constexpr (std::same_as<T, std::string>) return value;
}

template <class T>
void read_word(const std::string& word, T& value) {
  if constexpr (std::same_as<T, std::string>) value = word;
  if constexpr (std::integral<T>) value = static_cast<T>(std::stoull(word));
  if constexpr (std::is_enum_v<T>) {
    const auto& all = names_of(value);
    const auto found = std::ranges::find(all, word, [](T one) { return name_of(one); });
    if (found == all.end()) throw std::runtime_error("the worker does not know a word of its job");
    value = *found;
  }
}

template <class Job, class... Fields>
[[nodiscard]] std::vector<std::string> words_of(const Job& job, const std::tuple<Fields...>& fields) {
  return std::apply([&](auto... field) { return std::vector<std::string>{word_of(job.*field)...}; }, fields);
}

// Throws std::exception on words that are no job; only a person who starts a worker by hand sees that. `command` is the
// worker's, "pools-worker".
template <class Job, class... Fields>
[[nodiscard]] Job job_of_words(const char* command, const std::vector<std::string>& words,
                               const std::tuple<Fields...>& fields) {
  if (words.size() != sizeof...(Fields))
    throw std::runtime_error(std::string(command) + " is started by the freehold command");
  Job job;
  auto word = words.begin();
  std::apply([&](auto... field) { (read_word(*word++, job.*field), ...); }, fields);
  return job;
}

}  // namespace freehold::cli
