// SPDX-License-Identifier: MIT
// Questions to the name of a module or of a source.
#pragma once
#include <string_view>

namespace freehold::doctor {

// The name of a file without its folder.
[[nodiscard]] constexpr std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }
[[nodiscard]] constexpr bool is_libc(std::string_view file) {
  return base_name(file).starts_with("libc.so") || base_name(file).starts_with("libc-");
}
[[nodiscard]] constexpr bool is_linker(std::string_view file) { return base_name(file).starts_with("ld-"); }

}  // namespace freehold::doctor
