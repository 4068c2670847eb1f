// SPDX-License-Identifier: MIT
// A job as command-line words, for the worker process that does it, and back. Job::members() returns a tuple of pointers to
// the job's members, in the order of the words.
#pragma once
#include <algorithm>
#include <concepts>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "tools/support/names.hpp"

namespace freehold::lab {

// A value is a text, a number, a flag, an enumeration with names (tools/support/names.hpp), or a pointer to candidates,
// which have a name.
template <class T>
[[nodiscard]] std::string word_of(const T& value) {
  if constexpr (std::is_pointer_v<T>) return value->name;
  if constexpr (std::is_enum_v<T>) return std::string(name_of(value));
  if constexpr (std::integral<T>) return std::to_string(value);
  if constexpr (std::same_as<T, std::string>) return value;
}

template <class T>
void read_word(const std::string& word, T& value) {
  [[maybe_unused]] const auto find = [&](const auto& all, auto name) {
    const auto found = std::ranges::find(all, word, name);
    if (found == all.end()) throw std::runtime_error("the worker does not know a word of its job");
    return found;
  };
  if constexpr (std::same_as<T, std::string>) value = word;
  if constexpr (std::integral<T>) value = static_cast<T>(std::stoull(word));
  if constexpr (std::is_enum_v<T>) value = *find(names_of(value), [](T one) { return name_of(one); });
  if constexpr (std::is_pointer_v<T>) value = &*find(candidates_of(value), &std::remove_pointer_t<T>::name);
}

template <class Job>
[[nodiscard]] std::vector<std::string> words_of(const Job& job) {
  return std::apply([&](auto... member) { return std::vector<std::string>{word_of(job.*member)...}; }, Job::members());
}

// Throws std::exception on words that are no job; only a person who starts a worker by hand sees that.
template <class Job>
[[nodiscard]] Job job_of_words(const std::vector<std::string>& words) {
  Job job;
  if (words.size() != std::tuple_size_v<decltype(Job::members())>)
    throw std::runtime_error(std::string(Job::kWorker) + " is started by the freehold command");
  auto word = words.begin();
  std::apply([&](auto... member) { (read_word(*word++, job.*member), ...); }, Job::members());
  return job;
}

}  // namespace freehold::lab
