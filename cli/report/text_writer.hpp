// SPDX-License-Identifier: MIT
// Collects formatted text: the tables of a subcommand.
#pragma once
#include <fmt/format.h>

#include <string>
#include <utility>

namespace freehold::cli {

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

}  // namespace freehold::cli
