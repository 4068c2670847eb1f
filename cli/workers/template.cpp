// SPDX-License-Identifier: MIT
#include "cli/workers/template.hpp"

namespace freehold::cli::workers {
namespace {

std::string_view without_folder(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}
std::string_view folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? path.substr(0, 1) : path.substr(0, slash);
}
std::string_view without_extension(std::string_view path) {
  const std::size_t dot = path.rfind('.'), slash = path.rfind('/');
  const bool has_one = dot != std::string_view::npos && (slash == std::string_view::npos || dot > slash);
  return has_one ? path.substr(0, dot) : path;
}

}  // namespace

std::string quoted(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:,@%=";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string fill_template(std::string_view command, std::string_view argument, std::uint64_t number) {
  std::string filled;
  bool has_argument = false;
  for (std::size_t i = 0; i < command.size();) {
    const std::string_view rest = command.substr(i);
    const auto put = [&](std::string_view place, std::string_view value) {
      if (!rest.starts_with(place)) return false;
      filled += quoted(value);
      has_argument = true;
      i += place.size();
      return true;
    };
    if (put("{}", argument) || put("{.}", without_extension(argument)) || put("{/}", without_folder(argument)) ||
        put("{//}", folder_of(argument)) || put("{/.}", without_extension(without_folder(argument))))
      continue;
    if (rest.starts_with("{#}")) {
      filled += std::to_string(number);
      has_argument = true;
      i += 3;
      continue;
    }
    filled += command[i++];
  }
  if (!has_argument) filled += " " + quoted(argument);
  return filled;
}

}  // namespace freehold::cli::workers
