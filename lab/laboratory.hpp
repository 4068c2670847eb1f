// SPDX-License-Identifier: MIT
// The subcommands of freehold-lab.
#pragma once
#include "cli/command.hpp"

namespace freehold::cli {

void add_laboratory(CLI::App& app, Invocation& invocation);

}  // namespace freehold::cli
