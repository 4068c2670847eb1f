// The results for a terminal: a table and a small chart for threads and for processes, one table for the two tests of the
// thread-local article, and the verdict.
#pragma once
#include <span>
#include <string>

#include "cli/scale/results.hpp"
#include "cli/scale/verdict.hpp"

namespace freehold::cli::scale {

[[nodiscard]] std::string table_of(const Results& results, const Verdict& verdict);
// One bar of eight heights for each value, relative to `greatest`; a blank for what was not measured.
[[nodiscard]] std::string bars(std::span<const std::optional<double>> values, double greatest);
// Words broken into lines of at most `width` characters, each indented and ending in a newline.
[[nodiscard]] std::string wrap(const std::string& text, std::size_t width, const std::string& indent);

}  // namespace freehold::cli::scale
