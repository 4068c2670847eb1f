// SPDX-License-Identifier: MIT
// The subcommands of freehold-lab.
#pragma once
#include "cli/command.hpp"

namespace freehold::cli {

void add_scale(CLI::App& app, Invocation& invocation);
void add_pools(CLI::App& app, Invocation& invocation);
void add_simulate(CLI::App& app, Invocation& invocation);
void add_timers(CLI::App& app, Invocation& invocation);
void add_articles(CLI::App& app, Invocation& invocation);
// All of them.
void add_laboratory(CLI::App& app, Invocation& invocation);

}  // namespace freehold::cli
