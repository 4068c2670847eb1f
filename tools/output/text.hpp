// SPDX-License-Identifier: MIT
// Building blocks of the tables that a terminal shows.
#pragma once
#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tools/support/machine.hpp"

namespace freehold::inline tools {

inline constexpr std::size_t kWidth = 100;  // width of what the commands print, in characters

// One bar of eight heights for each value, relative to `greatest`; a blank for a value that is missing.
[[nodiscard]] std::string bars(std::span<const std::optional<double>> values, double greatest);
// With three significant digits: "0.12", "12.3", "123".
[[nodiscard]] std::string three_digits(double value);
// Words broken into lines of at most `width` characters, each indented and ending in a newline.
[[nodiscard]] std::string wrap(const std::string& text, std::size_t width, const std::string& indent);
// Notes, each with an asterisk in front and wrapped.
[[nodiscard]] std::string list_of(const std::vector<std::string>& notes, std::size_t width);
// The machine of a measurement, as one line.
[[nodiscard]] std::string machine_line(const Machine& machine);

// Collects formatted text: the tables of a subcommand.
class TextWriter {
 public:
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }
  [[nodiscard]] std::string take() && { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace freehold::inline tools
