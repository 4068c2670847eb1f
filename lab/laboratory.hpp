// SPDX-License-Identifier: MIT
// The subcommands of freehold-lab.
#pragma once
#include "cli/command.hpp"

namespace freehold::lab {

void add_laboratory(CLI::App& app, cli::Invocation& invocation);

}  // namespace freehold::lab
