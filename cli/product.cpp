// SPDX-License-Identifier: MIT
#include "cli/command.hpp"
#include "cli/experiments.hpp"

namespace freehold::cli {

void add_product(CLI::App& app, Invocation& invocation) {
  add_run(app, invocation);
  add_check_preload(app, invocation);
  add_stats(app, invocation);
  add_doctor(app, invocation);
  add_heap(app, invocation);
  add_workers(app, invocation);
}

void add_freehold(CLI::App& app, Invocation& invocation) {
  add_product(app, invocation);
  add_experiments(app);
}

int freehold_main(int argc, char** argv) {
  return exit_code_of(kFreehold, [&] {
    if (argc > 1 && find_experiment(argv[1]) != nullptr) start_experiment(argv);
    return execute({.name = kFreehold, .summary = kSummary, .add_subcommands = add_freehold}, argc, argv);
  });
}

}  // namespace freehold::cli
