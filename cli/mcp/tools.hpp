// SPDX-License-Identifier: MIT
// The tools that `freehold mcp` offers: what each is called, the JSON schema of its arguments, and the command line that
// does it.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace freehold::cli::mcp {

// The answer to "tools/list".
[[nodiscard]] nlohmann::ordered_json tools_list();

// Stands among a call's words for a new file, which then holds the result.
inline constexpr std::string_view kResultFile = "{result}";

// What one call asks for: words behind "freehold", or a text that is known already.
struct Call {
  std::vector<std::string> words;
  std::string text;
};
// Throws Failure with one line if there is no such tool, or if an argument is missing, unknown or of another type.
[[nodiscard]] Call call_of(const std::string& tool, const nlohmann::json& arguments);

}  // namespace freehold::cli::mcp
