// SPDX-License-Identifier: MIT
// The freehold command.
#include "cli/command.hpp"
#include "cli/experiments.hpp"

using namespace freehold::cli;

int main(int argc, char** argv) {
  return exit_code_of(kFreehold, [&] {
    if (argc > 1 && find_experiment(argv[1]) != nullptr) start_experiment(argv);
    return execute({.name = kFreehold, .summary = kSummary, .add_subcommands = add_freehold}, argc, argv);
  });
}
