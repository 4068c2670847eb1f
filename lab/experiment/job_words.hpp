// SPDX-License-Identifier: MIT
// A job as command-line words, for the worker process that does it, and back.
#pragma once
#include <concepts>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace freehold::cli {

[[nodiscard]] inline std::string word_of(const std::string& text) { return text; }
[[nodiscard]] inline std::string word_of(bool flag) { return flag ? "1" : "0"; }
[[nodiscard]] std::string word_of(std::unsigned_integral auto number) { return std::to_string(number); }
// An enumerator that has a name_of().
template <class T>
  requires std::is_enum_v<T>
[[nodiscard]] std::string word_of(T value) {
  return std::string(name_of(value));
}

template <class... Fields>
[[nodiscard]] std::vector<std::string> job_words(const Fields&... fields) {
  return {word_of(fields)...};
}

// Reads the words in their order. Every function throws std::runtime_error or another std::exception on a word that it does
// not understand; only a person who starts a worker by hand sees that.
class JobWords {
 public:
  // `command` is the worker's, "pools-worker"; a job of it has `count` words.
  JobWords(const char* command, const std::vector<std::string>& words, std::size_t count)
      : command_(command), words_(words) {
    if (words.size() != count) throw std::runtime_error(std::string(command) + " is started by the freehold command");
  }
  const std::string& text() { return words_.at(next_++); }
  std::uint32_t number() { return static_cast<std::uint32_t>(std::stoul(text())); }
  std::uint64_t large_number() { return std::stoull(text()); }
  bool flag() { return text() == "1"; }
  // find(name) -> std::optional of the value.
  auto named(auto find) {
    const auto value = find(text());
    if (!value) throw std::runtime_error(std::string(command_) + " does not know a word of its job");
    return *value;
  }

 private:
  const char* command_;
  const std::vector<std::string>& words_;
  std::size_t next_ = 0;
};

}  // namespace freehold::cli
