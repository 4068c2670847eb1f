// Commands that a person can paste into a shell.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace freehold::cli {

// The word as a shell reads it back: bare where nothing in it is special, else in single quotes.
[[nodiscard]] std::string shell_word(std::string_view word);
[[nodiscard]] std::string shell_words(std::span<const std::string> words);

}  // namespace freehold::cli
