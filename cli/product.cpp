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
  add_mcp(app, invocation);
  add_replay(app, invocation);
  add_workers(app, invocation);
}

void add_freehold(CLI::App& app, Invocation& invocation) {
  add_product(app, invocation);
  add_experiments(app);
}

}  // namespace freehold::cli
