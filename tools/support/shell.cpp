// SPDX-License-Identifier: MIT
#include "tools/support/shell.hpp"

#include <algorithm>

namespace freehold::inline tools {
namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-./,:=+@%").find(c) != std::string_view::npos;
}

class Splitter {
 public:
  explicit Splitter(std::string_view text) : rest_(text) {}

  std::optional<std::vector<std::string>> split() {
    while (!rest_.empty()) {
      const char c = take();
      if (c == ' ' || c == '\t' || c == '\n') {
        end_word();
      } else if (c == '\'' || c == '"') {
        if (!take_quoted(c)) return std::nullopt;
      } else if (c == '\\' && !rest_.empty()) {
        add(take());
      } else {
        add(c);
      }
    }
    end_word();
    return std::move(words_);
  }

 private:
  char take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  void add(char c) {
    word_ += c;
    in_word_ = true;
  }
  bool take_quoted(char quote) {
    in_word_ = true;
    while (!rest_.empty()) {
      char c = take();
      if (c == quote) return true;
      // Between double quotes a backslash escapes these alone.
      if (quote == '"' && c == '\\' && !rest_.empty() &&
          std::string_view("$`\"\\").find(rest_.front()) != std::string_view::npos)
        c = take();
      add(c);
    }
    return false;
  }
  void end_word() {
    if (in_word_) words_.push_back(std::move(word_));
    word_.clear();
    in_word_ = false;
  }

  std::string_view rest_;
  std::vector<std::string> words_;
  std::string word_;
  bool in_word_ = false;
};

}  // namespace

std::string shell_word(std::string_view word) {
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_words(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

std::optional<std::vector<std::string>> split_words(const std::string& text) { return Splitter(text).split(); }

}  // namespace freehold::inline tools
