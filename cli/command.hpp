// SPDX-License-Identifier: MIT
// The subcommands, as main() sees them: each is a function that adds itself to the parser. Its action leaves the exit code
// in Invocation, and throws Failure if it cannot go on.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/support/command_line.hpp"

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
void add_workers(CLI::App& app, Invocation& invocation);
void add_heap(CLI::App& app, Invocation& invocation);

// The subcommands of the product; add_freehold() adds the names of the laboratory's, too.
void add_product(CLI::App& app, Invocation& invocation);
void add_freehold(CLI::App& app, Invocation& invocation);

// A program of subcommands: `freehold`, or the laboratory.
struct Program {
  std::string name;
  std::string summary;
  void (*add_subcommands)(CLI::App& app, Invocation& invocation);
};
inline constexpr const char* kFreehold = "freehold";
inline constexpr const char* kSummary =
    "A malloc and memory tools for multithreaded programs that do not get faster with more CPUs";

// Does what the command line says, and returns the exit code. Throws Failure.
[[nodiscard]] int execute(const Program& program, int argc, char** argv);
// Returns the exit code of `action`. An exception becomes one line on standard error, after `name`, and an exit code.
[[nodiscard]] int exit_code_of(const std::string& name, const std::function<int()>& action);
// All of the freehold command. Returns the exit code.
[[nodiscard]] int freehold_main(int argc, char** argv);

// The parser of the whole command line, with every subcommand: for execute(), the manual pages and the completions of
// shells.
[[nodiscard]] std::unique_ptr<CLI::App> make_parser(const Program& program, Invocation& invocation);
// Subcommands whose arguments end in the command line of a program: "run", "heap profile", "check-preload".
[[nodiscard]] bool runs_a_program(const std::string& subcommand);

// Cuts `words` (the arguments of `command`) where the command's own options end: at "--", or at the first word that is
// neither an option of the command nor the value of one. Returns the rest, the command line of a program.
[[nodiscard]] std::vector<std::string> cut_program(const CLI::App& command, std::vector<std::string>& words);

}  // namespace freehold::cli
