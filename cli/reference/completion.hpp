// SPDX-License-Identifier: MIT
// Completions for bash, zsh and fish: subcommands, options, files where an option takes one, and behind `run` and `doctor`
// the program's own.
#pragma once
#include <string>

#include "cli/reference/commands.hpp"

namespace freehold::cli::reference {

[[nodiscard]] std::string bash_completion(const Command& root);
[[nodiscard]] std::string zsh_completion(const Command& root);
[[nodiscard]] std::string fish_completion(const Command& root);

}  // namespace freehold::cli::reference
