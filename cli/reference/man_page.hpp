// SPDX-License-Identifier: MIT
// The manual pages of the command and its subcommands, in man(7)'s macros.
#pragma once
#include <string>

#include "cli/reference/commands.hpp"

namespace freehold::cli::reference {

// "freehold-doctor.1"
[[nodiscard]] std::string man_page_name(const Command& command);
// `release` is the name and version for the page's foot: "freehold 0.1.0".
[[nodiscard]] std::string man_page(const Command& command, const std::string& release);

}  // namespace freehold::cli::reference
