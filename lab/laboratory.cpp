// SPDX-License-Identifier: MIT
#include "lab/laboratory.hpp"

namespace freehold::cli {

void add_laboratory(CLI::App& app, Invocation& invocation) {
  add_scale(app, invocation);
  add_pools(app, invocation);
  add_simulate(app, invocation);
  add_timers(app, invocation);
  add_articles(app, invocation);
}

}  // namespace freehold::cli
