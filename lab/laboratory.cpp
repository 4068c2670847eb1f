// SPDX-License-Identifier: MIT
#include "lab/laboratory.hpp"

#include "cli/experiments.hpp"
#include "lab/articles/experiment.hpp"
#include "lab/pools/experiment.hpp"
#include "lab/scale/experiment.hpp"
#include "lab/simulate/simulation.hpp"
#include "lab/timers/experiment.hpp"
#include "tools/support/output_file.hpp"

namespace freehold::lab {
namespace {

void add(CLI::App& app, cli::Invocation& invocation, const char* name, void (*add_options)(Command& command), int (*run)()) {
  Command command(app, name, cli::find_experiment(name)->summary);
  add_options(command);
  command.on_use([&invocation, run] {
    open_standard_files();
    invocation.exit_code = run();
  });
}

}  // namespace

void add_laboratory(CLI::App& app, cli::Invocation& invocation) {
  add(app, invocation, "scale", scale::add_options, scale::run_command);
  add(app, invocation, "pools", pools::add_options, pools::run_command);
  add(app, invocation, "simulate", simulate::add_options, simulate::run_command);
  add(app, invocation, "timers", timers::add_options, timers::run_command);
  add(app, invocation, "articles", articles::add_options, articles::run_command);
}

}  // namespace freehold::lab
