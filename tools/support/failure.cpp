// SPDX-License-Identifier: MIT
#include "tools/support/failure.hpp"

#include <algorithm>
#include <cstdio>
#include <system_error>

namespace freehold::inline tools {

std::string error_text(int error_number) { return std::generic_category().message(error_number); }

std::string printable(std::string_view name) {
  std::string text(name);
  std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

void say(std::string_view text) noexcept { (void)std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace freehold::inline tools
