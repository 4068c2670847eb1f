// SPDX-License-Identifier: MIT
// Quotes words so that a command can be pasted into a shell, and splits text into words as a shell does.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace freehold::inline tools {

// The word as a shell reads it back: bare where nothing in it is special, else in single quotes.
[[nodiscard]] std::string shell_word(std::string_view word);
[[nodiscard]] std::string shell_words(std::span<const std::string> words);
// "-t 4 'two words' a\ b" -> -t, 4, "two words", "a b". Quotes and backslashes as in POSIX; nothing is expanded.
// None: a quote that does not end.
[[nodiscard]] std::optional<std::vector<std::string>> split_words(const std::string& text);

}  // namespace freehold::inline tools
