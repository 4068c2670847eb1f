// SPDX-License-Identifier: MIT
// Writes the manual pages and the completions of shells into a folder.
#pragma once
#include "cli/command.hpp"

namespace freehold::cli::reference {

// The main() of a program with one argument, the folder; `program` is what it describes.
[[nodiscard]] int write_reference(const Program& program, int argc, char** argv);

}  // namespace freehold::cli::reference
