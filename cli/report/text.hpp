// Texts for terminals.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace freehold::cli {

// One bar of eight heights for each value, relative to `greatest`; a blank for what was not measured.
[[nodiscard]] std::string bars(std::span<const std::optional<double>> values, double greatest);
// Words broken into lines of at most `width` characters, each indented and ending in a newline.
[[nodiscard]] std::string wrap(const std::string& text, std::size_t width, const std::string& indent);

}  // namespace freehold::cli
