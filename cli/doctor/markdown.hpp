// SPDX-License-Identifier: MIT
// A report for the page of a job, in Markdown: the verdict, the gate's answer and the figures behind them, within a screen;
// the rest is folded away. From the report's JSON, so that a stored one can be shown as well.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/doctor/gate.hpp"

namespace freehold::cli::doctor {

// Names come from the program and from the user: none of them breaks a table or becomes markup.
[[nodiscard]] std::string markdown_of(const nlohmann::ordered_json& report, const Gate& gate);

// Text that Markdown shows as it is, within a table, too.
[[nodiscard]] std::string markdown_text(std::string_view text);
// The same as code.
[[nodiscard]] std::string markdown_code(std::string_view text);
// The gate's answers as a table; empty: there is none.
[[nodiscard]] std::string markdown_of(const Gate& gate);

}  // namespace freehold::cli::doctor
