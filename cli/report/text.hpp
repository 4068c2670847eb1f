// Texts for terminals.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/support/machine.hpp"

namespace freehold::cli {

// One bar of eight heights for each value, relative to `greatest`; a blank for what was not measured.
[[nodiscard]] std::string bars(std::span<const std::optional<double>> values, double greatest);
// Words broken into lines of at most `width` characters, each indented and ending in a newline.
[[nodiscard]] std::string wrap(const std::string& text, std::size_t width, const std::string& indent);
// Notes, one after the other, each behind an asterisk and wrapped.
[[nodiscard]] std::string list_of(const std::vector<std::string>& notes, std::size_t width);
// What a measurement was taken on, as a line.
[[nodiscard]] std::string machine_line(const Machine& machine);

}  // namespace freehold::cli
