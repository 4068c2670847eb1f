// SPDX-License-Identifier: MIT
// The subcommands, as main() sees them: each is a function that adds itself to the parser. Its action leaves the exit code
// in Invocation, and throws Failure if it cannot go on.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cli/support/command_line.hpp"

namespace freehold::cli {

struct Invocation {
  std::vector<std::string> program;  // for subcommands that run one: PROGRAM ARGS…, taken off before parsing
  int exit_code = 0;
};

void add_run(CLI::App& app, Invocation& invocation);
void add_check_preload(CLI::App& app, Invocation& invocation);
void add_stats(CLI::App& app, Invocation& invocation);
void add_doctor(CLI::App& app, Invocation& invocation);
// These two belong to the command of add_doctor().
void add_doctor_attach(Command& doctor, Invocation& invocation);
void add_doctor_compare(Command& doctor, Invocation& invocation);
void add_scale(CLI::App& app, Invocation& invocation);
void add_pools(CLI::App& app, Invocation& invocation);
void add_simulate(CLI::App& app, Invocation& invocation);
void add_timers(CLI::App& app, Invocation& invocation);
void add_articles(CLI::App& app, Invocation& invocation);
void add_workers(CLI::App& app, Invocation& invocation);
void add_replay(CLI::App& app, Invocation& invocation);
void add_heap(CLI::App& app, Invocation& invocation);
void add_mcp(CLI::App& app, Invocation& invocation);

// Does what the command line says, and returns the exit code. Throws Failure.
[[nodiscard]] int execute(int argc, char** argv);

// The parser of the whole command line, with every subcommand: for execute(), the manual pages and the completions of
// shells.
[[nodiscard]] std::unique_ptr<CLI::App> make_parser(Invocation& invocation);
// Subcommands whose arguments end in the command line of a program: "run", "heap profile", "check-preload".
[[nodiscard]] bool runs_a_program(const std::string& subcommand);

// Cuts `words` (the arguments of `command`) where the command's own options end: at "--", or at the first word that is
// neither an option of the command nor the value of one. Returns the rest, the command line of a program.
[[nodiscard]] std::vector<std::string> cut_program(const CLI::App& command, std::vector<std::string>& words);

}  // namespace freehold::cli
